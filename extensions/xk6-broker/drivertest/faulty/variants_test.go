package faulty_test

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
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

// variant is the correct driver with one thing broken, and the tests of the kit that must notice. None are broken where
// fails is empty: then the whole kit must pass.
type variant struct {
	name     string
	fails    []string
	config   faulty.Config
	claim    func(*driver.Features)
	classify func(error) driver.Kind
	open     func(open openFunc) openFunc
	conn     func(fullConn) driver.Conn
	send     func(p driver.Producer, ctx context.Context, b driver.Batch, done driver.Done)
	request  func(driver.Requester, context.Context, driver.Message) (driver.Message, error)
	leave    func(p driver.Producer, ctx context.Context) error // the producer's Close
	consume  func(driver.ConsumerConfig) driver.ConsumerConfig
	receive  func() func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) // one for each consumer
	settle   func(r driver.Consumer, ctx context.Context, b driver.Batch, o driver.Outcome) error
	quit     func(r *consumer, ctx context.Context) error // the consumer's Close
}

type openFunc = func(ctx context.Context, t driver.Target) (driver.Conn, error)

// fullConn, fullProducer and fullConsumer have the optional verbs of a broker that is not bare.
type (
	fullConn interface {
		driver.Conn
		driver.Admin
		driver.Backlogger
	}
	fullProducer interface {
		driver.Producer
		driver.Requester
	}
	fullConsumer interface {
		driver.Consumer
		driver.Replier
	}
)

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

func slow(d time.Duration) faulty.Config {
	return faulty.Config{Service: func(int64) time.Duration { return d }}
}

func variants() []variant {
	drop, never, twice := every(1000), every(100), every(100)
	return []variant{
		{name: "full"},
		{name: "log", config: faulty.Config{Features: faulty.Log()}},
		{name: "queue", config: faulty.Config{Features: faulty.Queue()}},
		{name: "subject", config: faulty.Config{Features: faulty.Subject(), Bare: true}},
		{name: "slow", config: slow(20 * time.Microsecond)},
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
			name: "loses the key's partition", config: faulty.Config{Features: faulty.Log()},
			fails: []string{"Order/within a partition"},
			receive: perMessage(func(m *driver.Message) {
				m.Partition = int32(m.Body[len(m.Body)-2] % 4)
			}),
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
			name: "refuses nothing", config: faulty.Config{Features: faulty.Subject(), Bare: true},
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
			name:  "leaks a goroutine",
			fails: []string{"Lifecycle/no goroutine outlives close"},
			conn: func(c fullConn) driver.Conn {
				go func() { select {} }()
				return c
			},
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
			name: "close ignores its context", fails: []string{"Lifecycle/close ends with its context"},
			leave: func(p driver.Producer, ctx context.Context) error { return p.Close(context.WithoutCancel(ctx)) },
		},
		{
			name: "close gives up what was sent", config: slow(50 * time.Microsecond),
			fails: []string{"Lifecycle/close waits for what was sent"},
			leave: func(p driver.Producer, ctx context.Context) error {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				return p.Close(ended)
			},
		},
		{
			name: "close does not wait", config: slow(50 * time.Microsecond),
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
			name: "does not wait for a settlement", fails: []string{"Settle/confirmed where asked for"},
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig { c.ConfirmSettle = false; return c },
		},
		{
			name: "waits for every settlement", fails: []string{"Settle/not waited for where not asked for"},
			consume: func(c driver.ConsumerConfig) driver.ConsumerConfig { c.ConfirmSettle = true; return c },
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
			name: "knows no kinds", fails: []string{
				"Errors/unreachable is of kind disconnected", "Errors/create, delete and not found", "Publish/topic that does not exist",
			},
			classify: func(error) driver.Kind { return driver.Unknown },
		},
		{
			name: "waits for a server for ever", fails: []string{"Lifecycle/server unreachable"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					c, err := open(ctx, t)
					if err != nil {
						select {}
					}
					return c, nil
				}
			},
		},
		{
			name: "opens without a server", fails: []string{"Lifecycle/server unreachable", "Lifecycle/server silent"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					u := *t.URL
					u.Host, t.URL = "", &u
					return open(ctx, t)
				}
			},
		},
		{
			name: "leaks secrets", fails: []string{"Errors/no password in an error", "Errors/no secret option in an error"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					c, err := open(ctx, t)
					if err != nil {
						err = fmt.Errorf("%v with %q: %w", t.URL, t.Options.String("token"), err)
						err = errors.Join(fmt.Errorf("%s: %w", t.URL.User, err))
					}
					return c, err
				}
			},
		},
		{
			name: "deletes what is not there", fails: []string{"Errors/create, delete and not found"},
			conn: func(c fullConn) driver.Conn { return careless{c} },
		},
		{
			name: "does not purge", fails: []string{"Errors/purge"},
			conn: func(c fullConn) driver.Conn { return careless{c} },
		},
		{
			name: "has no backlog ever", fails: []string{"Settle/backlog"},
			conn: func(c fullConn) driver.Conn { return careless{c} },
		},
	}
}

// careless has verbs that do nothing and say that all is well.
type careless struct{ fullConn }

func (c careless) DeleteTopic(ctx context.Context, topic string) error {
	_ = c.fullConn.DeleteTopic(ctx, topic)
	return nil
}
func (careless) PurgeTopic(context.Context, string) error               { return nil }
func (careless) Backlog(context.Context, string, string) (int64, error) { return 0, nil }

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
