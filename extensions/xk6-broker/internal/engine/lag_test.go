package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// sameTrend tells whether two trends have the same distribution.
func (b *bench) sameTrend(x, y recording.Trend) bool {
	values := func(t recording.Trend) (all []int64) {
		for v, n := range b.series.Trend(recording.Open, t).All() {
			all = append(all, v, int64(n))
		}
		return all
	}
	return slices.Equal(values(x), values(y))
}

// The process stands still for 150 ms while the loop sleeps. What is late then is so by the generator's own fault.
func TestAStandstillIsTheGeneratorsOwn(t *testing.T) {
	for _, c := range []struct {
		rate    int64
		service time.Duration
		window  int
		batch   int
	}{{500, time.Millisecond, 1 << 16, 0}, {500, time.Millisecond, 1 << 16, 2}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Service: func(int64) time.Duration { return c.service }})
			defer b.finish()
			start := driver.Now()
			from, to := start+int64(1001*time.Millisecond), start+int64(1151*time.Millisecond)
			b.run.sleep = func(ctx context.Context, until int64) error {
				if until >= from && until < to {
					until = to
				}
				return machine.Timer(ctx, until)
			}
			made, err := Produce{Schedule: constant(c.rate, 5*time.Second), Payload: payload.Spec{Size: payload.Fixed(100)}, Batch: c.batch}.
				Run(t.Context(), []*Sender{b.sender(c.window)})
			if err != nil || made.Failed != 0 {
				t.Fatalf("%+v, %v", made, err)
			}
			late := b.series.Trend(recording.Open, recording.ScheduleLag)
			if late.Count() != made.Due || late.Max() < int64(148*time.Millisecond) {
				t.Errorf("%+v: %d messages, at most %v late", c, late.Count(), time.Duration(late.Max()))
			}
			if own := b.series.Trend(recording.Open, recording.GeneratorLag); !b.sameTrend(recording.ScheduleLag, recording.GeneratorLag) {
				t.Errorf("%+v: messages were late by %v on average, of which %v is taken for the generator's own", c,
					time.Duration(late.Mean()), time.Duration(own.Mean()))
			}
		})
	}
}

// Two VUs, of which each has a sender, begin late at once and share a window of one: what the second waits for the
// first is not the generator's lag.
func TestSendersThatShareAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return 10 * time.Millisecond }})
		defer b.finish()
		first := b.sender(1)
		second := first.pub.NewSender(StampInBody, b.series)
		now := driver.Now()
		at := func(after time.Duration) Timing { return Timing{Due: now + int64(after)} }
		send := func(s *Sender, at Timing, sent *sync.WaitGroup) {
			sent.Add(1)
			s.Send(t.Context(), driver.Batch{{Body: make([]byte, 100)}}, at, func([]Receipt) { sent.Done() })
		}
		var sent sync.WaitGroup
		time.Sleep(100 * time.Millisecond)
		send(first, at(80*time.Millisecond), &sent)  // 20 ms late
		send(second, at(95*time.Millisecond), &sent) // 5 ms late, and waits until it is 15 ms late
		sent.Wait()
		send(first, at(120*time.Millisecond), &sent)  // in time
		send(second, at(120*time.Millisecond), &sent) // 10 ms late
		sent.Wait()
		ms := time.Millisecond
		sameDistribution(t, "schedule lag", b.series.Trend(recording.Open, recording.ScheduleLag), []time.Duration{20 * ms, 15 * ms, 0, 10 * ms})
		sameDistribution(t, "generator lag", b.series.Trend(recording.Open, recording.GeneratorLag), []time.Duration{20 * ms, 0, 0, 0})
	})
}

// Of a message that was late because its connection was being opened, only what the generator was late before that is its own.
func TestOpeningAConnectionIsNotTheGenerators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return time.Millisecond }})
		defer b.finish()
		s := b.sender(1)
		due := driver.Now()
		const own, opening = 10 * time.Millisecond, 500 * time.Millisecond
		time.Sleep(own + opening)
		done := make(chan struct{})
		s.Send(t.Context(), driver.Batch{{Body: make([]byte, 100)}}, Timing{Due: due}.After(int64(opening)), func([]Receipt) { close(done) })
		<-done
		if late := b.series.Trend(recording.Open, recording.ScheduleLag).Max(); late != int64(own+opening) {
			t.Errorf("it was %v late", time.Duration(late))
		}
		if of := b.series.Trend(recording.Open, recording.GeneratorLag).Max(); of != int64(own) {
			t.Errorf("%v of that is taken for the generator's", time.Duration(of))
		}
	})
}
