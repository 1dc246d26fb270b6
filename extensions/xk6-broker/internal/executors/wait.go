package executors

import (
	"context"
	"runtime/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// wait is a time in which a script did nothing that this module knows of but wait for one answer: from when it last did something with the module
// until the answer was there.
type wait struct{ from, to int64 }

// Wait is a script's waiting for an answer, in an iteration of an open-arrival-rate scenario. The zero one is nobody's.
type Wait struct {
	seat  *seat
	began int64
	of    uint64 // the iteration's arrival
}

// Await begins to wait in the iteration that runs in a VU, see [FromContext]. It may only be called on the VU's own goroutine, as [Wait.Over].
func Await(ctx context.Context) Wait {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok || !s.running {
		return Wait{}
	}
	s.touched = driver.Now()
	if s.awaits++; s.awaits == 1 {
		s.since = s.touched
	}
	return Wait{s, s.touched, s.Index}
}

// Answer is what ends a wait.
type Answer struct {
	At  int64 // when it was there, by Now of package driver
	Own Span  // of the wait, where nothing was waited for but a time that the script chose
	One bool  // it is one answer of the broker
}

// Span is from one time until another, by Now of package driver. The zero one is none.
type Span struct{ From, To int64 }

// Over says that the script goes on now with what it waited for.
func (w Wait) Over(a Answer) {
	s := w.seat
	if s == nil || !s.running || s.Index != w.of {
		return
	}
	from, now := max(w.began, s.touched), driver.Now()
	s.touched = now
	until := min(now, a.At) // since when it may have slept
	if a.Own.To > a.Own.From {
		s.spans.add(w.began, min(a.Own.From, until))
		s.spans.add(max(a.Own.To, w.began), until)
	} else {
		s.spans.add(w.began, until)
	}
	if s.awaits--; s.awaits == 0 {
		s.awaited += s.spans.length()
		s.spans = s.spans[:0]
	}
	// What the script did when the answer was there, for long, it may have done before: then it was not that answer that it waited for.
	if a.One && s.line.stopped.Load() > from && now-a.At <= int64(beatSeldom) && len(s.waits) < maxWaits {
		s.waits = append(s.waits, wait{from, a.At})
	}
}

// maxWaits is how many are remembered of an iteration; the standstills that came in others are taken to have held it up.
const maxWaits = 64

// alone is how long the script was busy with itself in the last iteration, in ns: with pauses, work, and what else it waited for than answers, be it by
// this module.
func (s *seat) alone() int64 {
	awaited := s.awaited
	if s.awaits > 0 {
		awaited += s.ended - s.since
	}
	return max(0, s.ended-s.Started-awaited)
}

// answered are the waits of the last iteration, if it ended with the last of them: one that went on for long had more to wait for.
func (s *seat) answered() []wait {
	if s.ended-s.touched > int64(beatSeldom) {
		return nil
	}
	return s.waits
}

// newIdle gives what tells whether no goroutine of the process runs, or could, but the one that asks.
func newIdle() func() bool {
	samples := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}}
	return func() bool {
		metrics.Read(samples)
		for _, s := range samples {
			if s.Value.Kind() != metrics.KindUint64 {
				return false // another version of Go
			}
		}
		return samples[0].Value.Uint64() == 0 && samples[1].Value.Uint64() <= 1
	}
}
