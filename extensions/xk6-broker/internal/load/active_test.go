package load

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

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
				r := resultOf(t, c)
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
