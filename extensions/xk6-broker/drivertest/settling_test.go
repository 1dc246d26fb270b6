package drivertest_test

import (
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// settling breaks what comes after a message was received.
func settling() []variant {
	return []variant{
		{
			name:  "requeues as it acks",
			fails: []string{"Settle/requeue delivers again"},
			settle: func(r driver.Consumer, ctx context.Context, b driver.Batch, o driver.Outcome) error {
				if o == driver.Requeue {
					o = driver.Ack
				}
				return r.Settle(ctx, b, o)
			},
		},
		{
			name:  "rejects as it requeues",
			fails: []string{"Settle/reject ends the delivery"},
			settle: func(r driver.Consumer, ctx context.Context, b driver.Batch, o driver.Outcome) error {
				if o == driver.Reject {
					o = driver.Requeue
				}
				return r.Settle(ctx, b, o)
			},
		},
		{
			name:  "acks one message of a batch",
			fails: []string{"Settle/ack ends the delivery", "Settle/backlog"},
			settle: func(r driver.Consumer, ctx context.Context, b driver.Batch, o driver.Outcome) error {
				return r.Settle(ctx, b[:1], o)
			},
		},
		{
			name: "forgets what was unsettled", fails: []string{"Settle/unsettled goes to another at close", "Settle/a part and out of order"},
			receive: perMessage(func(*driver.Message) {}),
			quit: func(r *consumer, ctx context.Context) error {
				_ = r.Consumer.Settle(ctx, r.got, driver.Ack)
				return r.Consumer.Close(ctx)
			},
		},
		{
			name: "gives more than prefetch", fails: []string{"Consume/prefetch bounds what is unsettled"},
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig { c.Prefetch = 1 << 20; return c },
		},
		{
			name: "does not wait for a settlement", fails: []string{"Settle/confirmed where asked for"},
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig { c.ConfirmSettle = false; return c },
		},
		{
			name: "waits for every settlement", fails: []string{"Settle/not waited for where not asked for"},
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig { c.ConfirmSettle = true; return c },
		},
		{
			name: "has no backlog ever", fails: []string{"Settle/backlog"},
			conn: func(c fullConn) driver.Conn { return careless{c} },
		},
	}
}
