package drivertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// sending breaks producers.
func sending() []variant {
	drop, never, twice := every(1000), every(100), every(100)
	return []variant{
		{
			name:  "drops one in a thousand",
			fails: []string{"Publish/batches of one, two and a thousand"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				if drop() {
					done(nil)
					return
				}
				one(p, ctx, m, done)
			}),
		},
		{
			name:  "confirms early",
			fails: []string{"Measure/done never before the broker has it", "Lifecycle/close ends with its context"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				done(nil)
				one(p, ctx, m, ignore)
			}),
		},
		{
			name: "confirms early and breaks", config: slow(time.Millisecond),
			fails: []string{"Reconnect/nothing confirmed is lost"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				done(nil)
				one(p, ctx, m, ignore)
			}),
		},
		{
			name:  "calls done twice",
			fails: []string{"Publish/batches of one, two and a thousand"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				again := twice()
				one(p, ctx, m, func(err error) {
					if done(err); again {
						done(err)
					}
				})
			}),
		},
		{
			name:  "never calls done",
			fails: []string{"Publish/batches of one, two and a thousand"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				if never() {
					done = ignore
				}
				one(p, ctx, m, done)
			}),
		},
		{
			name:  "reorders",
			fails: []string{"Order/within the topic"},
			send: func(p driver.Producer, ctx context.Context, b driver.Batch, done driver.Done) {
				b = slices.Clone(b)
				slices.Reverse(b)
				p.Send(ctx, b, func(i int, err error) { done(len(b)-1-i, err) })
			},
		},
		{
			name:  "duplicates",
			fails: []string{"Publish/batches of one, two and a thousand"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				if twice() {
					one(p, ctx, m, ignore)
				}
				one(p, ctx, m, done)
			}),
		},
		{
			name:  "corrupts bodies",
			fails: []string{"Publish/body"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				m.Body = []byte(strings.ToValidUTF8(string(m.Body), "?"))
				one(p, ctx, m, done)
			}),
		},
		{
			name:  "keeps bodies after done",
			fails: []string{"Publish/nothing is kept after done"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				done(nil)
				time.AfterFunc(10*time.Millisecond, func() { one(p, ctx, m, ignore) })
			}),
		},
		{
			name: "refuses nothing", config: memory.Config{Features: memory.Subject(), Bare: true},
			fails: []string{
				"Publish/headers", "Consume/groups refused", "Consume/start refused", "Settle/refused outcomes",
			},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				m.Headers = nil
				one(p, ctx, m, done)
			}),
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig {
				c.Group, c.Start = "", driver.StartNew
				return c
			},
			settle: func(driver.Consumer, context.Context, driver.Batch, driver.Outcome) error { return nil },
		},
		{
			name: "refuses keys", config: memory.Config{Features: memory.Subject(), Bare: true}, fails: []string{"Publish/key"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				if m.Key != nil {
					done(fmt.Errorf("keys: %w", errors.ErrUnsupported))
					return
				}
				one(p, ctx, m, done)
			}),
		},
		{
			name: "tells no place in its receipts", fails: []string{"Publish/receipts"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				m.Place = nil
				one(p, ctx, m, done)
			}),
		},
		{
			name: "tells another place", fails: []string{"Publish/receipts"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				one(p, ctx, m, func(err error) {
					if m.Place != nil {
						m.Place.Position.Number++
					}
					done(err)
				})
			}),
		},
		{
			name: "claims no receipts and tells", fails: []string{"Publish/receipts"},
			claim: func(f *driver.Features) { f.Receipts = false },
		},
		{
			name: "passes the choice of a partition over", config: memory.Config{Features: memory.Log()}, fails: []string{"Publish/partition of choice"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				m.Properties = nil
				one(p, ctx, m, done)
			}),
		},
		{
			name: "drops one in a thousand, and only sends", config: memory.Config{Features: memory.Store()},
			fails: []string{"Publish/batches of one, two and a thousand"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				if drop() {
					done(nil)
					return
				}
				one(p, ctx, m, done)
			}),
		},
		{
			name: "keeps what was sent, and sends numbers only", config: memory.Config{Features: numbered()}, numbers: true,
			fails: []string{"Publish/nothing is kept after done"},
			send: func(p driver.Producer, ctx context.Context, b driver.Batch, done driver.Done) {
				for i := range b {
					done(i, nil) // and what it is sent from has changed by now
				}
				p.Send(ctx, b, func(int, error) {})
			},
		},
		{
			name: "changes one number in a thousand", config: memory.Config{Features: numbered()}, numbers: true, fails: []string{"Publish/batches of one, two and a thousand"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				if drop() {
					m.Body = []byte("-1")
				}
				one(p, ctx, m, done)
			}),
		},
		{
			name: "corrupts bodies, and only sends", config: memory.Config{Features: memory.Store()},
			fails: []string{"Publish/body"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				m.Body = []byte(strings.ToValidUTF8(string(m.Body), "?"))
				one(p, ctx, m, done)
			}),
		},
		{
			name: "has consumers and does not say so", config: memory.Config{Features: memory.Subject(), Bare: true}, fails: []string{"Lifecycle/a driver that only sends has no consumers"},
			claim: func(f *driver.Features) { *f = memory.Store() },
		},
		{
			name:  "claims no requests and has them",
			fails: []string{"Request/the verbs are there as claimed"},
			claim: func(f *driver.Features) { f.Requests = false },
		},
		{
			name:  "mixes replies up",
			fails: []string{"Request/each request gets its reply"},
			request: func(p driver.Requester, ctx context.Context, m driver.Message) (driver.Message, error) {
				m.Body = []byte("another")
				return p.Request(ctx, m)
			},
		},
		{
			name: "close ignores its context", fails: []string{"Lifecycle/close ends with its context"},
			leave: func(p driver.Producer, ctx context.Context) error { return p.Close(context.WithoutCancel(ctx)) },
		},
		{
			name: "close gives up what was sent", config: slow(time.Millisecond),
			fails: []string{"Lifecycle/close waits for what was sent"},
			leave: func(p driver.Producer, ctx context.Context) error {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				return p.Close(ended)
			},
		},
		{
			name: "close does not wait", config: slow(time.Millisecond),
			fails: []string{"Lifecycle/close waits for what was sent"},
			leave: func(p driver.Producer, ctx context.Context) error {
				go func() { _ = p.Close(context.WithoutCancel(ctx)) }()
				return nil
			},
		},
		{
			name: "lingers", fails: []string{"Measure/publish does not linger"},
			send: func(p driver.Producer, ctx context.Context, b driver.Batch, done driver.Done) {
				b = slices.Clone(b)
				time.AfterFunc(10*time.Millisecond, func() { p.Send(ctx, b, done) })
			},
		},
		{
			name: "claims async and waits", fails: []string{"Publish/send returns before the answer"},
			send: func(p driver.Producer, ctx context.Context, b driver.Batch, done driver.Done) {
				var all sync.WaitGroup
				all.Add(len(b))
				p.Send(ctx, b, func(i int, err error) { done(i, err); all.Done() })
				all.Wait()
			},
		},
		{
			name: "claims to wait and does not", fails: []string{"Publish/send returns after the answer"},
			config: slow(time.Millisecond),
			claim:  func(f *driver.Features) { f.Async = false },
		},
		{
			name: "cuts what is too large", fails: []string{"Publish/body too large"},
			send: each(func(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
				m.Body = m.Body[:min(len(m.Body), 1<<20)]
				one(p, ctx, m, done)
			}),
		},
		{
			name: "claims too large a message", fails: []string{"Publish/body too large"},
			claim: func(f *driver.Features) { f.MaxMessageBytes /= 2 },
		},
	}
}

func every(n int64) func() bool {
	var count atomic.Int64
	return func() bool { return count.Add(1)%n == 0 }
}

// each sends the messages one by one, through f.
func each(f func(p driver.Producer, ctx context.Context, m driver.Message, done func(error))) func(driver.Producer, context.Context, driver.Batch, driver.Done) {
	return func(p driver.Producer, ctx context.Context, b driver.Batch, done driver.Done) {
		for i, m := range b {
			f(p, ctx, m, func(err error) { done(i, err) })
		}
	}
}

func one(p driver.Producer, ctx context.Context, m driver.Message, done func(error)) {
	p.Send(ctx, driver.Batch{m}, func(_ int, err error) { done(err) })
}

func ignore(error) {}
