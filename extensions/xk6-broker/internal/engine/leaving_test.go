package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// The broker keeps nothing, and messages take 60 ms. A subscriber leaves when a burst is confirmed and on its way. What comes of it is drained; what does not
// is uncertain, as is what has no answer yet. A loss long before that is exact.
func TestSubscriber_LeavesAmidABurst_DrainedOrUncertain(t *testing.T) {
	const burst = 40
	answered := memory.Subject()
	answered.Confirm, answered.Async = driver.Accepted, true
	for _, c := range []struct {
		name               string
		answer             time.Duration
		drops              uint64 // of each burst
		drained, uncertain uint64
	}{
		{"all comes", 20 * time.Millisecond, 0, burst, 0},
		{"some are dropped", 20 * time.Millisecond, 3, burst - 3, 3},
		{"no answer comes", 20 * time.Second, 0, 0, burst},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := 20 * time.Millisecond
				b := newBench(t, memory.Config{
					Features: answered, Servers: 10 * burst, Service: func(int64) time.Duration { return service },
					Transit: func(int64) time.Duration { return 60 * time.Millisecond },
				})
				leaves := b.consumer(driver.ConsumerConfig{})
				leaves.consumer = lossy{leaves.consumer, func(m driver.Message) bool {
					var s Stamp
					if s.take(&m, b.run.ID) != stamped {
						t.Error("a message without a stamp")
					}
					return s.Sequence%burst < c.drops
				}}
				s := b.sender(1000)
				b.produce(s, burst)
				b.receive(leaves, burst-int(c.drops))
				time.Sleep(2 * time.Second)
				service = c.answer
				var sending sync.WaitGroup
				sending.Go(func() { b.produce(s, burst) })
				time.Sleep(30 * time.Millisecond)
				if err := leaves.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				sending.Wait()
				service = 0
				b.produce(s, burst) // to nobody
				b.finish()
				a := b.only()
				if a.Expected != 2*burst || a.Drained != c.drained || a.Lost != c.drops || a.Why[account.Leaving] != c.uncertain || a.Uncertain != c.uncertain {
					t.Errorf("expected %d, drained %d, lost %d, uncertain %v; want %d, %d, %d, %d", a.Expected, a.Drained, a.Lost, a.Why,
						2*burst, c.drained, c.drops, c.uncertain)
				}
			})
		})
	}
}

// A subscriber leaves at once, with messages still on their way. None of them is lost.
func TestSubscriber_LeavesWithoutTimeToDrain_RestUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		c := b.consumer(driver.ConsumerConfig{Prefetch: 10})
		b.produce(b.sender(100), 60)
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = c.Leave(ctx)
		b.finish()
		if a := b.only(); a.Expected != 60 || a.Lost != 0 || a.Drained+a.Why[account.Leaving] != 60 {
			t.Errorf("%+v", a)
		}
	})
}
