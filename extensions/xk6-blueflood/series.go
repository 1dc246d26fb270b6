package blueflood

import (
	"sync"
	"time"
)

// ahead is how far before the clock the server lets a point's time be, less a minute for what the clocks are apart.
const ahead = 10*time.Minute - time.Minute

// series gives each point of a producer a metric and a time, which no other has together. The metrics take turns, so that as many points in a row as there are
// metrics may be of one time.
type series struct {
	metrics int
	now     func() time.Time

	mu   sync.Mutex
	next int   // the metric of the next point
	at   int64 // its time, in ms since the Unix epoch
	used int   // how many points there are of that time
}

// points are some in a row.
type points struct {
	metrics, first, used int
	at                   int64
}

// take gives the next n points. It is false where their times would be too far ahead.
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

// metric is the number of point i's metric.
func (p points) metric(i int) int { return (p.first + i) % p.metrics }

// time is point i's, in ms since the Unix epoch.
func (p points) time(i int) int64 { return p.at + int64((p.used+i)/p.metrics) }
