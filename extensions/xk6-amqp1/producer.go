package amqp1

import (
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
	out      *outbox.Outbox[outgoing]
	answers  *outbox.Outbox[answer]

	life context.Context // ends if Close gives up waiting
	stop context.CancelCauseFunc
	done chan struct{} // closed when every message is done

	envelope envelope // used by run only
}

// outgoing is an unsent message.
type outgoing struct {
	message *driver.Message
	done    driver.Done
	i       int
}

// answer is the expected answer for a message.
type answer struct {
	receipt amqp.SendReceipt
	done    driver.Done
	i       int
}

// outLink is a link to send on, with its session.
type outLink struct {
	session *amqp.Session
	sender  *amqp.Sender
	on      *connection
	lost    bool // used by run only
}

// NewProducer opens a link to the topic's address. It fails if the broker has no such address.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	p := &producer{
		conn: c, topic: config.Topic, defaults: properties{}.with(config.Options), done: make(chan struct{}),
		out: outbox.New[outgoing](nil), answers: outbox.New[answer](nil),
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	p.link = redial.New(p.open, func(o *outLink) bool { return o.lost || o.on.broken() })
	o, err := p.link.Get(ctx)
	if err != nil {
		p.stop(driver.ErrClosed)
		return nil, err
	}
	p.exchange = c.mode == pubsub && o.on.rabbitmq()
	go p.run()
	go p.await()
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

// Send hands the batch to the goroutine that sends.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	if p.out.Put(len(b), func(i int) outgoing { return outgoing{&b[i], done, i} }) {
		return
	}
	for i := range b {
		done(i, driver.ErrClosed)
	}
}

// run sends messages until Close, and the ones queued before it.
func (p *producer) run() {
	defer p.answers.Close()
	for all := p.out.Next(nil, math.MaxInt, 0); len(all) > 0; all = p.out.Next(all, math.MaxInt, 0) {
		p.sendAll(all)
	}
}

// await reports the broker's answers.
func (p *producer) await() {
	defer close(p.done)
	for all := p.answers.Next(nil, math.MaxInt, 0); len(all) > 0; all = p.answers.Next(all, math.MaxInt, 0) {
		for _, a := range all {
			state, err := a.receipt.Wait(p.life)
			if err == nil {
				err = outcome(state, p.exchange)
			}
			a.done(a.i, p.explain(err))
		}
	}
}

// sendAll sends messages over one link. If there is none, or it is lost, all the rest fail.
func (p *producer) sendAll(all []outgoing) {
	o, err := p.link.Get(p.life)
	if err == nil {
		defer p.abandonLost(o)
		for i, m := range all {
			if err = p.send(o, m); o.lost {
				all = all[i:]
				break
			}
			if err != nil {
				m.done(m.i, p.explain(err))
			}
		}
		if !o.lost {
			return
		}
	}
	for _, m := range all {
		m.done(m.i, p.explain(err))
	}
}

// send writes a message to the network as soon as the broker gives credit.
func (p *producer) send(o *outLink, m outgoing) error {
	if err := p.envelope.fill(m.message, p.defaults); err != nil {
		return err
	}
	receipt, err := o.sender.SendWithReceipt(p.life, &p.envelope.Message, nil)
	if err != nil {
		o.lost = closedBelow(err)
		return err
	}
	p.answers.Put(1, func(int) answer { return answer{receipt, m.done, m.i} })
	return nil
}

// abandonLost ends the session of a lost link.
func (p *producer) abandonLost(o *outLink) {
	if !o.lost {
		return
	}
	ctx, cancel := context.WithTimeout(p.life, p.conn.timeout)
	defer cancel()
	_ = o.session.Close(ctx)
}

// explain returns the reason why the producer gave up instead of its consequence.
func (p *producer) explain(err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(p.life); cause != nil {
		return cause
	}
	return err
}

// Close waits for the answers. The messages without one when ctx ends fail with its error.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.stop(ctx.Err())
		<-p.done
	}
	p.stop(driver.ErrClosed)
	return p.link.Close(func(o *outLink) error {
		_ = o.session.Close(ctx)
		return nil
	})
}

// As lends the current *amqp.Sender.
func (p *producer) As(target any) bool {
	o, ok := p.link.Last()
	return ok && driver.As(target, o.sender)
}
