package drivertest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// receiving breaks consumers.
func receiving() []variant {
	return []variant{
		{
			name: "loses the key's partition", config: memory.Config{Features: memory.Log()},
			fails: []string{"Order/within a partition"},
			receive: perMessage(func(m *driver.Message) {
				m.Partition = int32(m.Body[len(m.Body)-2] % 4)
			}),
		},
		{
			name:    "takes headers and attempts away",
			fails:   []string{"Publish/headers", "Consume/what comes with a message", "Settle/requeue delivers again"},
			receive: perMessage(func(m *driver.Message) { m.Headers, m.Attempt = nil, 0 }),
		},
		{
			name:    "takes keys away",
			fails:   []string{"Publish/key"},
			receive: perMessage(func(m *driver.Message) { m.Key = nil }),
		},
		{
			name:    "gives attempts it does not claim",
			fails:   []string{"Consume/what comes with a message", "Settle/requeue delivers again"},
			claim:   func(f *driver.Features) { f.Attempts = false },
			receive: perMessage(func(*driver.Message) {}),
		},
		{
			name:    "stamps late",
			fails:   []string{"Consume/what comes with a message"},
			receive: perMessage(func(m *driver.Message) { m.Received += int64(time.Hour) }),
		},
		{
			name:    "stamps early",
			fails:   []string{"Consume/what comes with a message"},
			receive: perMessage(func(m *driver.Message) { m.Received = 0 }),
		},
		{
			name: "forgets where messages are", fails: []string{"Consume/position", "Consume/timestamp", "Publish/receipts"},
			place: func(*driver.Message, driver.Place) driver.Place { return driver.Place{} },
		},
		{
			name: "claims no timestamps and tells", fails: []string{"Consume/timestamp"}, config: memory.Config{Features: memory.Queue()},
			place: func(m *driver.Message, is driver.Place) driver.Place { is.Timestamp = m.Received; return is },
		},
		{
			name: "claims no positions and tells", fails: []string{"Consume/position"},
			claim: func(f *driver.Features) { f.Position = driver.NoPosition },
		},
		{
			name: "says that all messages are at one position", fails: []string{"Consume/position"},
			place: func(_ *driver.Message, is driver.Place) driver.Place { is.Position.Number = 5; return is },
		},
		{
			name: "counts positions down", fails: []string{"Consume/position"},
			place: func(_ *driver.Message, is driver.Place) driver.Place { is.Position.Number ^= 1<<40 - 1; return is },
		},
		{
			name: "counts positions anew each time", fails: []string{"Consume/position"},
			place: func() func(*driver.Message, driver.Place) driver.Place {
				var n atomic.Uint64
				return func(_ *driver.Message, is driver.Place) driver.Place { is.Position.Number = n.Add(1); return is }
			}(),
		},
		{
			name: "takes its own time for the broker's", fails: []string{"Consume/timestamp"},
			place: func(m *driver.Message, is driver.Place) driver.Place { is.Timestamp = m.Received; return is },
		},
		{
			name: "tells timestamps in milliseconds", fails: []string{"Consume/timestamp"},
			place: func(_ *driver.Message, is driver.Place) driver.Place { is.Timestamp /= 1e6; return is },
		},
		{
			name: "receive ignores its context", fails: []string{"Lifecycle/receive ends with its context"},
			receive: func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
				return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
					return r.Receive(context.WithoutCancel(ctx), b)
				}
			},
		},
		{
			name: "a cancelled receive loses messages", fails: []string{"Lifecycle/no message is lost to a cancelled receive"},
			receive: func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
				return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
					longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
					defer cancel()
					defer context.AfterFunc(ctx, func() { time.AfterFunc(10*time.Millisecond, cancel) })()
					n, err := r.Receive(longer, b)
					if ctx.Err() != nil {
						return 0, ctx.Err()
					}
					return n, err
				}
			},
		},
		{
			name: "waits to fill a batch", fails: []string{"Consume/waits for the first and not for the second"},
			receive: filling(time.Hour),
		},
		{
			name: "waits a little to fill a batch", fails: []string{"Measure/receive does not linger"},
			receive: filling(10 * time.Millisecond),
		},
		{
			name: "polls", fails: []string{"Measure/receive does not linger"},
			receive: func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
				return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
					ended, cancel := context.WithCancel(ctx)
					cancel()
					for ctx.Err() == nil {
						now, cancel := context.WithTimeout(ctx, time.Millisecond)
						n, err := r.Receive(now, b)
						cancel()
						if n > 0 || !errors.Is(err, context.DeadlineExceeded) {
							return n, err
						}
						time.Sleep(50 * time.Millisecond)
					}
					return r.Receive(ended, b)
				}
			},
		},
		{
			name: "gives one message at a time", fails: []string{"Consume/fills a batch with what is there"},
			receive: func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
				return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
					return r.Receive(ctx, b[:1])
				}
			},
		},
		{
			name: "uses its buffer again", fails: []string{"Consume/a batch stays as it was"},
			receive: func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
				buffer := make([]byte, 1<<10)
				return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
					n, err := r.Receive(ctx, b)
					for i, at := 0, 0; i < n; i++ {
						end := at + copy(buffer[at:], b[i].Body)
						b[i].Body, at = buffer[at:end], end
					}
					return n, err
				}
			},
		},
		{
			name: "starts at the earliest always", fails: []string{"Consume/start new"},
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig { c.Start = driver.StartEarliest; return c },
		},
		{
			name: "starts new always", fails: []string{"Consume/start earliest", "Consume/replay"},
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig { c.Start = driver.StartNew; return c },
		},
		{
			name: "members do not share", fails: []string{"Consume/a group shares"},
			consume: func() func(c driver.ConsumerConfig) driver.ConsumerConfig {
				var n atomic.Int64
				return func(c driver.ConsumerConfig) driver.ConsumerConfig { c.Group += fmt.Sprint(n.Add(1)); return c }
			}(),
		},
		{
			name: "all groups are one", fails: []string{"Consume/groups are independent", "Consume/without a group"},
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig { c.Group = "one"; return c },
		},
		{
			name: "dies with its connection", fails: []string{"Reconnect/producer and consumer work again"},
			receive: func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
				var dead error
				return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
					if dead != nil {
						return 0, dead
					}
					n, err := r.Receive(ctx, b)
					if err != nil && ctx.Err() == nil {
						dead = err
					}
					return n, err
				}
			},
		},
		{
			name: "spins", fails: []string{"Measure/an idle consumer rests"},
			receive: func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
				return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
					for {
						now, cancel := context.WithTimeout(ctx, time.Microsecond)
						n, err := r.Receive(now, b)
						cancel()
						for until := time.Now().Add(2 * time.Millisecond); time.Now().Before(until); {
							continue // a timer alone would let the processor rest
						}
						if n > 0 || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
							return n, err
						}
					}
				}
			},
		},
	}
}

// perMessage changes each message received.
func perMessage(f func(*driver.Message)) func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
	return func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
		return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
			n, err := r.Receive(ctx, b)
			for i := range b[:n] {
				f(&b[i])
			}
			return n, err
		}
	}
}

// filling receives until the batch is full, for as long as it may.
func filling(limit time.Duration) func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
	return func() func(driver.Consumer, context.Context, driver.Batch) (int, error) {
		return func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) {
			n, err := r.Receive(ctx, b)
			if err != nil {
				return n, err
			}
			short, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			for n < len(b) && err == nil {
				var more int
				more, err = r.Receive(short, b[n:])
				n += more
			}
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return n, nil
		}
	}
}
