package amqp1

import (
	"cmp"
	"context"
	"math"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// producer has a goroutine that gives messages to its link, which returns after the network has
// each, and a second one that waits for the broker's answers in their order.
type producer struct {
	conn     *conn
	topic    string
	link     *redial.Link[*outLink]
	defaults properties
	exchange bool // the topic is an exchange of RabbitMQ
	out      *outbox.Workers[*driver.Message]
	answers  *outbox.Workers[amqp.SendReceipt]
	envelope envelope // used by sendAll only
}

// outLink is a link to send on, with its session.
type outLink struct {
	session *amqp.Session
	sender  *amqp.Sender
	on      *connection
	lost    bool // used by sendAll only
}

// NewProducer opens a link to the topic's address. It fails if the broker has no such address.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	p := &producer{
		conn: c, topic: config.Topic, defaults: properties{}.with(config.Options),
	}
	p.link = redial.New(p.open, func(o *outLink) bool { return o.lost || o.on.broken() })
	o, err := p.link.Get(ctx)
	if err != nil {
		return nil, err
	}
	p.exchange = c.mode == pubsub && o.on.rabbitmq()
	p.out = outbox.Start(1, math.MaxInt, 0, func(*driver.Message) int { return 0 }, p.sendAll)
	p.answers = outbox.Start(1, math.MaxInt, 0, func(amqp.SendReceipt) int { return 0 }, p.await)
	return p, nil
}

// open opens the link. Messages go unsettled: the broker answers for each.
func (p *producer) open(ctx context.Context) (*outLink, error) {
	o := &outLink{}
	err := p.conn.session(ctx, func(ctx context.Context, s *amqp.Session, on *connection) (err error) {
		o.session, o.on = s, on
		o.sender, err = s.NewSender(ctx, p.conn.address(on, p.topic), &amqp.SenderOptions{
			TargetCapabilities: []string{p.conn.mode.capability()},
		})
		return err
	})
	return o, err
}

// Send queues the batch.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	p.out.Send(b, done, func(m *driver.Message) (*driver.Message, error) { return m, nil })
}

// await reports the broker's answers.
func (p *producer) await(ctx context.Context, all []outbox.Item[amqp.SendReceipt]) {
	for _, a := range all {
		state, err := a.Message.Wait(ctx)
		if err == nil {
			err = outcome(state, p.exchange)
		}
		a.Done(explain(ctx, err))
	}
}

// sendAll sends messages over one link. If there is none, or it is lost, all the rest fail.
func (p *producer) sendAll(ctx context.Context, all []outbox.Item[*driver.Message]) {
	o, err := p.link.Get(ctx)
	if err == nil {
		defer p.abandonLost(ctx, o)
		for i, m := range all {
			if err = p.send(ctx, o, m); o.lost {
				all = all[i:]
				break
			}
			if err != nil {
				m.Done(explain(ctx, err))
			}
		}
		if !o.lost {
			return
		}
	}
	for _, m := range all {
		m.Done(explain(ctx, err))
	}
}

// send writes a message to the network as soon as the broker gives credit.
func (p *producer) send(ctx context.Context, o *outLink, m outbox.Item[*driver.Message]) error {
	if err := p.envelope.fill(m.Message, p.defaults); err != nil {
		return err
	}
	receipt, err := o.sender.SendWithReceipt(ctx, &p.envelope.Message, nil)
	if err != nil {
		o.lost = closedBelow(err)
		return err
	}
	p.answers.Put(outbox.Item[amqp.SendReceipt]{Message: receipt, Index: m.Index, Report: m.Report})
	return nil
}

// abandonLost ends the session of a lost link.
func (p *producer) abandonLost(ctx context.Context, o *outLink) {
	if !o.lost {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.conn.timeout)
	defer cancel()
	_ = o.session.Close(ctx)
}

// explain returns the reason why the producer gave up instead of its consequence.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(context.Cause(ctx), err)
}

// Close waits for the answers. The messages without one when ctx ends fail with its error.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close(ctx)
	p.answers.Close(ctx)
	return p.link.Close(func(o *outLink) error {
		_ = o.session.Close(ctx)
		return nil
	})
}
