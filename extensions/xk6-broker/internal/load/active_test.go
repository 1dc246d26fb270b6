package load

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// A rate is that of the time in which it went on, however short that was, whenever the collections were, and wherever a phase was cut: also of one
// that ends while the broker stands still.
func TestRatesOfShortTimes(t *testing.T) {
	for _, length := range []time.Duration{100 * time.Millisecond, 900 * time.Millisecond, 1500 * time.Millisecond, 2 * time.Second, 2700 * time.Millisecond, 4 * time.Second} {
		for _, wait := range []time.Duration{10 * time.Millisecond, 650 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{Service: func(int64) time.Duration { return 300 * time.Microsecond }})
				c := b.run.NewCollector()
				defer c.Close()
				stop := make(chan struct{})
				go func() {
					for {
						select {
						case <-time.After(time.Second):
							c.Collect()
						case <-stop:
							return
						}
					}
				}()
				time.Sleep(wait)
				if _, err := c.Begin(result.Measure); err != nil {
					t.Fatal(err)
				}
				produce := Produce{Schedule: constant(200, length), Payload: payload.Spec{Size: payload.Fixed(100)}}
				if _, err := produce.Run(t.Context(), []*Sender{b.sender(10)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(wait)
				if _, err := c.Begin("rest"); err != nil {
					t.Fatal(err)
				}
				close(stop)
				b.finish()
				r := c.Result()
				for _, name := range []string{"confirmed", "sent", "due"} {
					for _, of := range []*result.Result{r, r.During(result.Measure)} {
						if rate, err := measure.Rate(name).OfRun(of); err != nil || math.Abs(rate-200) > 1 {
							t.Errorf("%v, %v before it: %s %.2f/s of a schedule of 200 a second, %v", length, wait, name, rate, err)
						}
					}
				}
			})
		}
	}
}

// Batches of a hundred, one each second, are so many as there were from the first to the last, whatever makes a batch, and 100/s in a phase of whole seconds, wherever it is cut.
func TestRatesOfBatches(t *testing.T) {
	for name, send := range map[string]func(s, of *Sender, wait *sync.WaitGroup){
		"batches of two scenarios": func(s, of *Sender, wait *sync.WaitGroup) {
			for _, s := range []*Sender{s, of} {
				wait.Add(1)
				s.Send(t.Context(), make(driver.Batch, 50), Timing{}, func([]Receipt) { wait.Done() })
				time.Sleep(300 * time.Microsecond)
			}
		},
		"a batch": func(s, _ *Sender, wait *sync.WaitGroup) {
			wait.Add(1)
			s.Send(t.Context(), make(driver.Batch, 100), Timing{}, func([]Receipt) { wait.Done() })
		},
		"loops": func(s, _ *Sender, wait *sync.WaitGroup) {
			for range 100 {
				wait.Add(1)
				s.Send(t.Context(), make(driver.Batch, 1), Timing{}, func([]Receipt) { wait.Done() })
				time.Sleep(5 * time.Millisecond)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Service: func(int64) time.Duration { return 10 * time.Microsecond }})
			c := b.run.NewCollector()
			defer c.Close()
			ctx, cancel := context.WithCancel(t.Context())
			var received, sent sync.WaitGroup
			consumer := b.consumer(driver.ConsumerConfig{Group: "g", Prefetch: 1000})
			received.Go(func() { b.consume(ctx, Consume{}, consumer) })
			s, of, started := b.sender(1000), b.sender(1000), time.Now()
			labels := b.series.Labels
			labels.Tags = "another"
			of.SetSeries(b.run.Series(labels))
			begun := sync.WaitGroup{}
			begun.Go(func() {
				for _, at := range []time.Duration{2700 * time.Millisecond, 6700 * time.Millisecond} {
					time.Sleep(time.Until(started.Add(at)))
					if _, err := c.Begin(at.String()); err != nil {
						t.Error(err)
					}
				}
			})
			for n := range 10 {
				time.Sleep(time.Until(started.Add(time.Duration(n) * time.Second)))
				c.Collect()
				send(s, of, &sent)
			}
			sent.Wait()
			begun.Wait()
			last := time.Since(started)
			time.Sleep(time.Second)
			cancel()
			received.Wait()
			c.Collect()
			b.finish()
			r := c.Result()
			for _, counter := range []string{"due", "sent", "confirmed", "received"} {
				if rate, err := measure.Rate(counter).OfRun(r); err != nil || math.Abs(rate*last.Seconds()/1000-1) > 0.003 {
					t.Errorf("%s: %s %.2f/s of 1000 in %v, %v", name, counter, rate, last, err)
				}
				if rate, err := measure.Rate(counter).OfRun(r.During("2.7s")); err != nil || math.Abs(rate-100) > 1e-6 {
					t.Errorf("%s: %s %.2f/s in the phase, %v", name, counter, rate, err)
				}
			}
		})
	}
}

// The pause that an instant is in, on average, is known: of batches it is about that between them, and of one standstill what it has of the time.
func TestPauses(t *testing.T) {
	const ms = int64(time.Millisecond)
	for name, c := range map[string]struct {
		at   []int64 // ms
		want float64 // s
	}{
		"nothing":      {nil, 0},
		"one":          {[]int64{5}, 0},
		"evenly":       {[]int64{10, 20, 30, 40}, 0.01},
		"out of order": {[]int64{10, 30, 20, 30, 40}, (0.02*0.02 + 0.01*0.01) / 0.03},
		"batches":      {[]int64{1000, 1000, 1000, 2000, 2000, 3000, 3000}, 1},
		"a standstill": {[]int64{1000, 1001, 1002, 3002, 3003, 4000}, (2*2 + 3e-6 + 0.997*0.997) / 3},
	} {
		var all activities
		for _, at := range c.at {
			all[0].note(at*ms + 1)
		}
		if its, ok := all.spans(0)["sent"]; ok != (len(c.at) > 0) || math.Abs(its.Pause-c.want) > 1e-9 {
			t.Errorf("%s: %+v, want %v", name, its, c.want)
		}
	}
}

// A pause in which one phase ends and another begins is divided between them, and the run has it as a whole.
func TestPausesOfPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return 10 * time.Microsecond }})
		c := b.run.NewCollector()
		defer c.Close()
		s, started := b.sender(1000), time.Now()
		var sent sync.WaitGroup
		for _, step := range []struct {
			at    time.Duration
			phase string
		}{{1 * time.Second, ""}, {2 * time.Second, ""}, {5 * time.Second, "b"}, {10 * time.Second, ""}, {10500 * time.Millisecond, ""}, {11 * time.Second, "start"}, {12 * time.Second, ""}} {
			time.Sleep(time.Until(started.Add(step.at)))
			if step.phase != "" {
				if _, err := c.Begin(step.phase); err != nil {
					t.Fatal(err)
				}
				continue
			}
			sent.Add(1)
			s.Send(t.Context(), make(driver.Batch, 1), Timing{}, func([]Receipt) { sent.Done() })
		}
		sent.Wait()
		c.Collect()
		b.finish()
		of := c.Result().Topics[0]
		whole, start, in := of.Spans["sent"].Pause, of.Phases["start"].Pauses["sent"], of.Phases["b"].Pauses["sent"]
		if math.Abs(whole-(1+64+0.25+2.25)/11) > 1e-3 || math.Abs(start-(1+9+1)/5.0) > 1e-3 || math.Abs(in-(25+0.25+0.25)/6) > 1e-3 {
			t.Errorf("%v, %v and %v", whole, start, in)
		}
	})
}
