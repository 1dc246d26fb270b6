package load

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// A broker stands still from second 6 to 10 of a schedule of 100 a second, and the measured window ends at second 8: of what was due in it two seconds
// are under way, though with a window of five messages hardly any of them had been sent. The history says so of every second, and shows when they
// were due.
func TestWhatABrokerHoldsUpAtTheEndOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const end = 10*time.Second + 500*time.Microsecond
		start := driver.Now()
		stands := func(now int64) time.Duration {
			if at := time.Duration(now - start); at > 6*time.Second && at < end {
				return end - at
			}
			return time.Millisecond
		}
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return stands(driver.Now()) }})
		consumer := b.consumer(driver.ConsumerConfig{Group: "workers"})
		c := b.run.NewCollector()
		defer c.Close()
		loop, err := Consume{Count: 1200}.Resolve(b.topic.Address.Driver.Features)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := loop.Run(t.Context(), []*Consumer{consumer}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			produce := Produce{Schedule: constant(100, 12*time.Second), Start: start + int64(5*time.Millisecond), Payload: payload.Spec{Size: payload.Fixed(100)}}
			if _, err := produce.Run(t.Context(), []*Sender{b.sender(5)}); err != nil {
				t.Error(err)
			}
		})
		for second := range 13 {
			time.Sleep(time.Duration(start + int64(second)*int64(time.Second) - driver.Now()))
			c.Collect()
			switch second {
			case 2:
				_, err = c.Begin(result.Measure)
			case 8:
				_, err = c.Begin("rest")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		all.Wait()
		b.finish()
		r := resultOf(t, c)
		addUp(t, r)
		w := r.Topics[0].Phases[result.Measure]
		if w.Counts["due"] != 600 || w.Underway.Sends < 199 || w.Underway.Sends > 201 || w.Underway.Arrivals < 190 || w.Underway.Deliveries < 199 || w.Underway.Deliveries > 201 {
			t.Errorf("%+v of %d due", w.Underway, w.Counts["due"])
		}
		for i, p := range r.Topics[0].History {
			if second := int(p.At + 0.5); p.Seconds > 0.9 && second <= 12 && p.Counts["due"] != 100 {
				t.Errorf("interval %d, to %v: %d were due", i, p.At, p.Counts["due"])
			}
			if second := p.At; second > 8.9 && second < 9.1 && (p.Underway.Sends < 299 || p.Underway.Sends > 301) {
				t.Errorf("after 9 s: %+v", p.Underway)
			}
		}
		r.Judge(result.Circumstances{})
		for _, belief := range r.Verdict.Beliefs {
			if belief.UpTo > 0.5 {
				t.Errorf("a third of the messages of the window is not in it, and %+v", belief)
			}
		}
	})
}
