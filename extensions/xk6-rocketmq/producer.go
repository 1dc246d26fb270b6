package rocketmq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer sends to one topic, over lanes. Each lane has one request under way at a time, so that what goes over one lane stays in order.
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
	turn  atomic.Uint64 // of the brokers
	lanes []*lane       // one in all that take from the same queue, or in order one for each queue of the topic

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
	lanes, requests := 1, int(cfg.Options.Int("requests"))
	if p.fifo {
		lanes, requests, p.batch = len(r.queues), 1, 1
	}
	for range lanes {
		l := newLane(cfg.Window)
		p.lanes = append(p.lanes, l)
		for range min(requests, cfg.Window) {
			p.running.Go(func() { p.work(l) })
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
		if err == nil {
			err = p.laneOf(m).put(pending{m, i, done})
		}
		if err != nil {
			done(i, err)
		}
	}
}

// laneOf keeps the messages of one queue in order, which a server chooses by the message group.
func (p *producer) laneOf(m *v2.Message) *lane {
	if len(p.lanes) == 1 {
		return p.lanes[0]
	}
	return p.lanes[bucket(m.GetSystemProperties().GetMessageGroup(), len(p.lanes))]
}

// work sends what waits in a lane, until that is closed and empty.
func (p *producer) work(l *lane) {
	some := make([]pending, 0, p.batch)
	for {
		some = l.take(some[:0], p.batch)
		if len(some) == 0 {
			return
		}
		errs := p.request(some)
		for i, one := range some {
			one.done(one.index, errs(i))
		}
		clear(some)
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
	for _, l := range p.lanes {
		l.close()
	}
	stop := context.AfterFunc(ctx, p.stop)
	p.running.Wait()
	stop()
	p.stop()
	return nil
}
