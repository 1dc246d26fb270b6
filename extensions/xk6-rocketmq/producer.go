package rocketmq

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

type outgoing = outbox.Item[*v2.Message]

// producer sends to one topic. Each outbox of FIFO messages has one request under way, so that they
// stay in order.
type producer struct {
	conn     *conn
	topic    string
	resource *v2.Resource
	options  driver.Values
	fifo     bool   // the topic is one of FIFO messages
	group    string // of FIFO messages without a key
	ids      *ids

	route atomic.Pointer[route]
	turn  atomic.Uint64                  // of the brokers
	outs  []*outbox.Workers[*v2.Message] // one, or of FIFO messages one for each queue of the topic
}

// NewProducer fails if the topic does not exist.
func (c *conn) NewProducer(ctx context.Context, cfg driver.ProducerConfig) (driver.Producer, error) {
	r, err := c.find(ctx, cfg.Topic)
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", cfg.Topic, err)
	}
	p := &producer{
		conn: c, topic: cfg.Topic, resource: c.resource(cfg.Topic), options: cfg.Options,
		group: "xk6-broker-" + rand.Text(), ids: newIDs(), fifo: r.fifo(),
	}
	p.route.Store(r)
	outs, requests, batch := 1, int(cfg.Options.Int("requests")), int(cfg.Options.Int("batch"))
	if p.fifo {
		outs, requests, batch = len(r.queues), 1, 1
	}
	for range outs {
		size := func(*v2.Message) int { return 0 }
		p.outs = append(p.outs, outbox.Start(min(requests, cfg.Window), batch, 0, size, p.send))
	}
	return p, nil
}

// Send queues the batch. Messages of one queue of the topic, which a server chooses by the message
// group, share an outbox.
func (p *producer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	for i := range b {
		m, err := p.encode(&b[i])
		err = cmp.Or(ctx.Err(), err)
		if err != nil {
			done(i, err)
			continue
		}
		out := p.outs[0]
		if len(p.outs) > 1 {
			out = p.outs[bucket(m.GetSystemProperties().GetMessageGroup(), len(p.outs))]
		}
		out.Put(outgoing{Message: m, Index: i, Report: done})
	}
}

// send sends messages with one request. Each has its own result.
func (p *producer) send(life context.Context, all []outgoing) {
	results, err := p.request(life, all)
	for i, item := range all {
		if err == nil && results != nil {
			item.Done(check(results[i].GetStatus()))
		} else {
			item.Done(err)
		}
	}
}

// request returns the results of the messages, or none if all are stored.
func (p *producer) request(life context.Context, all []outgoing) ([]*v2.SendResultEntry, error) {
	brokers := p.route.Load().brokers
	s, err := p.conn.servers.at(brokers[p.turn.Add(1)%uint64(len(brokers))].address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(life, p.conn.options.Duration("requestTimeout"))
	defer cancel()
	ask := &v2.SendMessageRequest{Messages: make([]*v2.Message, len(all))}
	for i, item := range all {
		ask.Messages[i] = item.Message
	}
	answer, err := s.SendMessage(p.conn.servers.as(ctx, p.conn.name), ask, waiting)
	if err != nil {
		return nil, cmp.Or(context.Cause(life), called(ctx, err))
	}
	results := answer.GetEntries()
	if answer.GetStatus().GetCode() != v2.Code_MULTIPLE_RESULTS || len(results) != len(all) {
		return nil, check(answer.GetStatus())
	}
	return results, nil
}

// Close waits for the answers. The rest fails with ctx's error when ctx ends.
func (p *producer) Close(ctx context.Context) error {
	for _, out := range p.outs {
		out.Close(ctx)
	}
	return nil
}
