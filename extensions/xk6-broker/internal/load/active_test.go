package load

import (
	"context"
	"math"
	"slices"
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
		for _, wait := range []time.Duration{0, 650 * time.Millisecond} {
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

// What comes together is as often as it comes: 100 messages each second are 100/s, for however few seconds, in batches or by 100 loops that wait a second
// each; where they are received, too.
func TestRatesOfBatches(t *testing.T) {
	for _, at := range [][]float64{{0, 1}, {0, 1, 2}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
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
					time.Sleep(200 * time.Microsecond)
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
				for _, when := range at {
					time.Sleep(time.Until(started.Add(time.Duration(when * float64(time.Second)))))
					c.Collect()
					send(s, of, &sent)
				}
				sent.Wait()
				time.Sleep(time.Second)
				cancel()
				received.Wait()
				c.Collect()
				b.finish()
				r := c.Result()
				for _, counter := range []string{"due", "sent", "confirmed", "received"} {
					if rate, err := measure.Rate(counter).OfRun(r); err != nil || math.Abs(rate-100) > 3 {
						t.Errorf("%s at %v: %s %.2f/s, %v", name, at, counter, rate, err)
					}
				}
			})
		}
	}
}

// The longest pauses are known with their times, from one interval to the next too, and only so many of them.
func TestGaps(t *testing.T) {
	const second = int64(time.Second)
	var a activity
	for _, at := range []float64{1, 1.04, 1.2, 1.9} {
		a.note(int64(at * float64(second)))
	}
	one := a.take()
	a.note(4 * second)
	both := one.and(a.take())
	if want := []gap{{104 * second / 100, 12 * second / 10}, {12 * second / 10, 19 * second / 10}, {19 * second / 10, 4 * second}}; !slices.Equal(both.gaps, want) {
		t.Errorf("%v, want %v", both.gaps, want)
	}
	for i := range int64(30) {
		a.note(4*second + i*second/10 + i*i*second/1000)
	}
	if many := a.take().gaps; len(many) != mostGaps || many[0].to-many[0].from < 126*second/1000 || !slices.IsSortedFunc(many, func(a, b gap) int { return int(a.from - b.from) }) {
		t.Errorf("%d gaps, the first of %v", len(many), time.Duration(many[0].to-many[0].from))
	}
}
