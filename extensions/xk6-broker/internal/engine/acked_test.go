package engine

import (
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// Only acknowledged messages count as acked, and unsettled ones do not make a run invalid.
func TestAcked_SomeOfAll_CountsThese(t *testing.T) {
	atMostOnce := memory.Full()
	atMostOnce.Deliver = driver.AtMostOnce
	for name, c := range map[string]struct {
		broker  memory.Config
		acked   int
		outcome driver.Outcome // of the others
	}{
		"none":          {},
		"not all":       {acked: 1500},
		"given back":    {acked: 1500, outcome: driver.Requeue},
		"at most once":  {broker: memory.Config{Features: atMostOnce}},
		"cumulative":    {broker: memory.Config{Cumulative: true}, acked: 1},
		"held unseen":   {broker: memory.Config{Untold: true}, acked: 1500},
		"all the while": {acked: 2000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.broker)
				collector := b.run.NewCollector()
				consumer := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 2000})
				b.produce(b.sender(2000), 2000)
				in := b.receive(consumer, 2000)
				if c.acked > 0 {
					b.settle(consumer, in, 0, c.acked, driver.Ack)
				}
				if c.outcome != 0 {
					b.settle(consumer, in, c.acked, 2000, c.outcome)
				}
				b.finish()
				r := collector.Result()
				verdict.Judge(r, verdict.Circumstances{})
				if n := r.Topics[0].Counts["acked"]; n != int64(c.acked) || !r.Verdict.Valid {
					t.Errorf("acked %d, want %d; %+v", n, c.acked, r.Verdict)
				}
			})
		})
	}
}
