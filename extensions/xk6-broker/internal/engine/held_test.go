package engine

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// whatIsThere runs a test on brokers that tell what they never delivered and on brokers that do not. What then is missing, and the broker has, is
// undelivered, or it cannot be known.
func whatIsThere(t *testing.T, c memory.Config, test func(t *testing.T, b *bench), undelivered, uncertain uint64) {
	t.Helper()
	for _, coarse := range []bool{false, true} {
		t.Run(fmt.Sprintf("coarse %v", coarse), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.Coarse = coarse
				b := newBench(t, c)
				test(t, b)
				a := b.only()
				want := account.Account{Undelivered: undelivered + uncertain}
				if coarse {
					want = account.Account{Undelivered: undelivered, Uncertain: uncertain}
				}
				if a.Lost != 0 || a.Undelivered != want.Undelivered || a.Uncertain != want.Uncertain {
					t.Errorf("lost %d, undelivered %d, uncertain %d; want 0, %d, %d", a.Lost, a.Undelivered, a.Uncertain, want.Undelivered, want.Uncertain)
				}
			})
		})
	}
}

func (b *bench) settle(c *Consumer, in *Buffer, from, to int, o driver.Outcome) {
	b.t.Helper()
	if err := c.Settle(b.t.Context(), in, from, to, o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) close(c *Consumer) {
	b.t.Helper()
	if err := c.Close(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func TestWhatTheBrokerGivesUpIsNotHeld(t *testing.T) {
	whatIsThere(t, memory.Config{Deliveries: 3}, func(_ *testing.T, b *bench) {
		c, s := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.sender(1000)
		b.produce(s, 60)
		for range 3 {
			b.settle(c, b.receive(c, 60), 0, 60, driver.Requeue)
		}
		b.close(c)
		b.produce(s, 3)
		b.finish()
	}, 0, 3)
}
