package blueflood

import (
	"errors"
	"net"
	"net/http"
	"sync"
)

// journal counts a producer's confirmed points by metric, and holds the unconfirmed ones that may
// be stored.
type journal struct {
	mu          sync.Mutex
	confirmed   []int64 // by metric
	all         int64   // confirmed points
	doubtful    map[place]struct{}
	first, last int64 // times of confirmed points, in ms since the Unix epoch; 0 if there are none
}

// place identifies a point.
type place struct {
	metric int
	at     int64 // ms since the Unix epoch
}

func newJournal(metrics int) *journal {
	return &journal{confirmed: make([]int64, metrics), doubtful: map[place]struct{}{}}
}

// note adds the outcome of sent points.
func (j *journal) note(at points, sent []int, fate func(k int) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for k, i := range sent {
		metric, ms := at.metric(i), at.time(i)
		switch err := fate(k); {
		case err == nil:
			j.confirmed[metric]++
			j.all++
			if j.first == 0 || ms < j.first {
				j.first = ms
			}
			j.last = max(j.last, ms)
		case mayBeStored(err):
			j.doubtful[place{metric, ms}] = struct{}{}
		}
	}
}

// mayBeStored returns false if the server did not get the point or has refused it.
func mayBeStored(err error) bool {
	var answer *answerError
	var network *net.OpError
	switch {
	case errors.As(err, new(*pointError)):
		return false
	case errors.As(err, &answer):
		return answer.status < 400 || answer.status >= http.StatusInternalServerError
	case errors.As(err, &network):
		return network.Op != "dial"
	}
	return true
}

// among returns how many of a metric's stored points, given by their times, are confirmed ones.
func (j *journal) among(metric int, times []int64) (n int64) {
	for _, at := range times {
		if _, doubtful := j.doubtful[place{metric, at}]; !doubtful {
			n++
		}
	}
	return n
}
