package load

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// The broker and its answers are 60 ms away, and it keeps nothing. A subscriber leaves 10 ms after a burst was sent, when none of it is confirmed. It waits for that: what was
// sent before it left is drained, what never came of it, and of what was sent before, is lost, to the message, and what was sent after it is none of its.
// Where no answer comes in time, it is not known.
func TestASubscriberThatLeavesWaitsForWhatIsInFlight(t *testing.T) {
	const burst, second = 40, time.Second
	answered := memory.Subject()
	answered.Confirm, answered.Async = driver.Accepted, true
	for _, c := range []struct {
		name             string
		answer           time.Duration
		drops            uint64 // of those before, and of those in flight
		drained, unknown uint64
	}{
		{"all comes", 120 * time.Millisecond, 0, burst, 0},
		{"some are dropped", 120 * time.Millisecond, 3, burst - 3, 0},
		{"no answer comes", 20 * time.Second, 0, 0, burst},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := 120 * time.Millisecond
				b := newBench(t, memory.Config{
					Features: answered, Servers: 10 * burst, Service: func(int64) time.Duration { return service },
					Transit: func(int64) time.Duration { return 60 * time.Millisecond },
				})
				leaves := b.consumer(driver.ConsumerConfig{})
				leaves.consumer = lossy{leaves.consumer, func(m driver.Message) bool {
					var s Stamp
					if s.take(&m, b.run.ID) != nil {
						t.Error("a message without a stamp")
					}
					return s.Sequence%burst < c.drops
				}}
				s := b.sender(1000)
				b.produce(s, burst)
				time.Sleep(second)
				b.receive(leaves, burst-int(c.drops))
				service = c.answer
				var sending sync.WaitGroup
				sending.Go(func() { b.produce(s, burst) })
				time.Sleep(10 * time.Millisecond)
				if err := leaves.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				sending.Wait()
				service = 0
				b.produce(s, burst) // to nobody
				b.finish()
				a := b.only()
				want := account.Account{Lost: 2 * c.drops, Uncertain: c.unknown}
				if a.Expected != 2*burst || a.Drained != c.drained || a.Lost != want.Lost || a.Uncertain != want.Uncertain {
					t.Errorf("expected %d, drained %d, lost %d, uncertain %d; want %d, %d, %d, %d", a.Expected, a.Drained, a.Lost, a.Uncertain,
						2*burst, c.drained, want.Lost, want.Uncertain)
				}
			})
		})
	}
}
