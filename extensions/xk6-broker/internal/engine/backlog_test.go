package engine

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// guessing is a connection that can only guess what there is.
type guessing struct{ driver.Conn }

func (g guessing) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	b, err := g.Conn.(driver.Backlogger).Backlog(ctx, topic, group)
	b.Estimate = true
	return b, err
}

// Of what is missing by an estimate nothing is known: it may be lost, or still there.
func TestByAnEstimateNothingIsLost(t *testing.T) {
	for _, estimate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			if estimate {
				b.conn = guessing{b.conn}
			}
			c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10})
			b.produce(b.sender(100), 100)
			b.settle(c, b.receive(c, 10), 0, 10, driver.Ack)
			b.steal(5)
			b.close(c)
			b.topic.askBacklogs(t.Context())
			a := b.accounts()[0]
			if !estimate && (a.Lost != 5 || a.Uncertain != 0) || estimate && (a.Lost != 0 || a.Undelivered != 0 || a.Uncertain != 90) {
				t.Errorf("an estimate: %v: %+v", estimate, a)
			}
			b.finish()
		})
	}
}
