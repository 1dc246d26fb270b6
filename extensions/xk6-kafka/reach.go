package kafka

import "sync"

// reach is which offsets the members of a group in this process have received, from the least to the greatest. It outlives them.
type reach struct {
	mu     sync.Mutex
	groups map[reachKey]map[int32]span
}

type reachKey struct{ hosts, topic, group string }

var reached = reach{groups: map[reachKey]map[int32]span{}}

// note adds what members have received of a partition.
func (r *reach) note(key reachKey, partition int32, s span) {
	if s.from >= s.end {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.groups[key]
	if all == nil {
		all = map[int32]span{}
		r.groups[key] = all
	}
	if known, ok := all[partition]; ok {
		s = span{min(s.from, known.from), max(s.end, known.end)}
	}
	all[partition] = s
}

// below returns how many received offsets lie at or after from and before end.
func (r *reach) below(key reachKey, partition int32, from, end int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.groups[key][partition]
	return max(0, min(end, s.end)-max(from, s.from))
}
