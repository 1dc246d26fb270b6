package blueflood

import (
	"sync"
	"time"
)

// ahead is the server's limit of a point's time ahead of the clock, less a minute for the clocks.
const ahead = 10*time.Minute - time.Minute

// series gives each point of a producer a unique pair of metric and time. The metrics take turns,
// so that as many points in a row as there are metrics may have one time.
type series struct {
	metrics int
	now     func() time.Time

	mu   sync.Mutex
	next int   // the metric of the next point
	at   int64 // its time, in ms since the Unix epoch
	used int   // the number of points with that time
}

// points are some points in a row.
type points struct {
	metrics, first, used int
	at                   int64
}

// take returns the next n points; false if their times would be too far ahead.
func (s *series) take(n int) (points, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if ms := now.UnixMilli(); ms > s.at {
		s.at, s.used = ms, 0
	}
	p := points{s.metrics, s.next, s.used, s.at}
	if p.time(n-1) > now.Add(ahead).UnixMilli() {
		return p, false
	}
	s.next = (s.next + n) % s.metrics
	s.used += n
	s.at += int64(s.used / s.metrics)
	s.used %= s.metrics
	return p, true
}

// metric returns the number of point i's metric.
func (p points) metric(i int) int { return (p.first + i) % p.metrics }

// time returns point i's time, in ms since the Unix epoch.
func (p points) time(i int) int64 { return p.at + int64((p.used+i)/p.metrics) }
