package engine

import (
	"slices"
	"sync"
)

// Lane is a part of a series that measures for one loop at a time, so that the loop can tell its own latencies: what the loop records goes
// there instead, and is no more work. The distributions of the series are with those of its lanes; it counts for all of them.
type Lane struct {
	*Series
	of    *Series
	begun Distributions
}

// lanes are those of a series. There are as many as there were loops at a time: one that has ended leaves its lane to the next.
type lanes struct {
	mu   sync.Mutex
	all  []*Series
	idle []*Series
}

func (l *lanes) list() []*Series {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// Lane lends a lane to a loop of so many goroutines.
func (s *Series) Lane(goroutines int) *Lane {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if n := len(s.lanes.idle); n > 0 {
		lane := s.lanes.idle[n-1]
		s.lanes.idle = s.lanes.idle[:n-1]
		return &Lane{Series: lane, of: s, begun: lane.distributions(everyPhase)}
	}
	// One of few shards serves a later loop of more goroutines too, only slower.
	lane := &Series{Labels: s.Labels, tally: s.tally, shards: min(goroutines, mostShards)}
	s.lanes.all = append(s.lanes.all, lane)
	return &Lane{Series: lane, of: s}
}

// End gives the lane back, and what was measured since it was lent. Only the first call does.
func (l *Lane) End() (measured Distributions) {
	if l.of == nil {
		return measured
	}
	measured = l.distributions(everyPhase).since(&l.begun)
	lanes := &l.of.lanes
	l.of = nil
	lanes.mu.Lock()
	defer lanes.mu.Unlock()
	lanes.idle = append(lanes.idle, l.Series)
	return measured
}
