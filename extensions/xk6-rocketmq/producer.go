package rocketmq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// pending is a message that waits to be sent.
type pending struct {
	message *v2.Message
	index   int
	done    driver.Done
}

// producer sends to one topic. What FIFO messages wait in has one request under way at a time, so that they stay in order.
type producer struct {
	conn     *conn
	topic    string
	resource *v2.Resource
	options  driver.Values
	fifo     bool   // the topic is one of FIFO messages
	group    string // of those without a key
	ids      *ids
	batch    int

	route atomic.Pointer[route]
	turn  atomic.Uint64             // of the brokers
	outs  []*outbox.Outbox[pending] // one, or of FIFO messages one for each queue of the topic

	life    context.Context // ends when Close gives up
	stop    context.CancelFunc
	running sync.WaitGroup
}

func (c *conn) NewProducer(ctx context.Context, cfg driver.ProducerConfig) (driver.Producer, error) {
	r, err := c.find(ctx, cfg.Topic)
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", cfg.Topic, err)
	}
	p := &producer{
		conn: c, topic: cfg.Topic, resource: c.resource(cfg.Topic), options: cfg.Options, group: fmt.Sprintf("xk6-broker-%016x", rand.Uint64()), //gosec:disable G404 -- a name, no secret
		ids: newIDs(), fifo: r.fifo(), batch: int(cfg.Options.Int("batch")),
	}
	p.route.Store(r)
	p.life, p.stop = context.WithCancel(context.Background())
	outs, requests := 1, int(cfg.Options.Int("requests"))
	if p.fifo {
		outs, requests, p.batch = len(r.queues), 1, 1
	}
	for range outs {
		out := outbox.New[pending](nil)
		p.outs = append(p.outs, out)
		for range min(requests, cfg.Window) {
			p.running.Go(func() { p.work(out) })
		}
	}
	return p, nil
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	if err := ctx.Err(); err != nil {
		for i := range b {
			done(i, err)
		}
		return
	}
	for i := range b {
		m, err := p.encode(&b[i])
		if err == nil && !p.outOf(m).Put(1, func(int) pending { return pending{m, i, done} }) {
			err = driver.ErrClosed
		}
		if err != nil {
			done(i, err)
		}
	}
}

// outOf keeps the messages of one queue in order, which a server chooses by the message group.
func (p *producer) outOf(m *v2.Message) *outbox.Outbox[pending] {
	if len(p.outs) == 1 {
		return p.outs[0]
	}
	return p.outs[bucket(m.GetSystemProperties().GetMessageGroup(), len(p.outs))]
}

// work sends what waits, until the producer is closed and all has gone.
func (p *producer) work(out *outbox.Outbox[pending]) {
	var some []pending
	for {
		if some = out.Next(some, p.batch, 0); len(some) == 0 {
			return
		}
		errs := p.request(some)
		for i, one := range some {
			one.done(one.index, errs(i))
		}
	}
}

// request sends messages by one call and gives the fate of each.
func (p *producer) request(some []pending) func(i int) error {
	all := func(err error) func(int) error { return func(int) error { return err } }
	brokers := p.route.Load().brokers
	s, err := p.conn.servers.at(brokers[p.turn.Add(1)%uint64(len(brokers))].address)
	if err != nil {
		return all(err)
	}
	ctx, cancel := context.WithTimeout(p.life, p.conn.options.Duration("requestTimeout"))
	defer cancel()
	ask := &v2.SendMessageRequest{Messages: make([]*v2.Message, len(some))}
	for i, one := range some {
		ask.Messages[i] = one.message
	}
	answer, err := s.SendMessage(p.conn.servers.as(ctx, p.conn.name), ask, waiting)
	if err != nil {
		if p.life.Err() != nil {
			err = driver.ErrClosed
		} else {
			err = called(ctx, err)
		}
		return all(err)
	}
	entries := answer.GetEntries()
	if answer.GetStatus().GetCode() != v2.Code_MULTIPLE_RESULTS || len(entries) != len(some) {
		return all(check(answer.GetStatus()))
	}
	return func(i int) error { return check(entries[i].GetStatus()) }
}

// Close waits for the answers, and gives those up that have not come when ctx ends.
func (p *producer) Close(ctx context.Context) error {
	for _, out := range p.outs {
		out.Close()
	}
	stop := context.AfterFunc(ctx, p.stop)
	p.running.Wait()
	stop()
	p.stop()
	return nil
}
