package blueflood

import (
	"testing"
	"time"
)

// No two points share metric and time, and none is further ahead of the clock than the server lets it be.
func TestSeries(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	s := series{metrics: 7, now: func() time.Time { return now }}
	seen := map[place]bool{}
	latest, taken := int64(0), 0
	for i := range 2000 {
		n := 1 + i%20
		p, ok := s.take(n)
		if !ok {
			t.Fatal("too far ahead, so soon")
		}
		metrics := map[int]bool{}
		for k := range n {
			at := place{p.metric(k), p.time(k)}
			if seen[at] || at.at < latest || at.metric != taken%7 {
				t.Fatalf("point %d: %+v, after one at %d", taken, at, latest)
			}
			seen[at], latest = true, at.at
			metrics[at.metric] = true
			taken++
		}
		if len(metrics) != min(n, 7) {
			t.Fatalf("%d points are of %d metrics", n, len(metrics))
		}
		if i%3 == 0 {
			now = now.Add(time.Millisecond)
		}
	}
	if p, _ := s.take(1); p.time(0) < latest || p.time(0) > now.UnixMilli()+int64(taken) {
		t.Errorf("%d points, and the next is at %d", taken, p.time(0))
	}
	most := 7 * int((9 * time.Minute).Milliseconds())
	if _, ok := s.take(most + 7); ok {
		t.Error("more than nine minutes ahead")
	}
	for left := true; left; _, left = s.take(1000) {
	}
	now = now.Add(time.Second)
	if p, ok := s.take(7000); !ok || p.time(6999) > now.Add(10*time.Minute).UnixMilli() {
		t.Errorf("a second later: %v, %d", ok, p.time(6999))
	}
}
