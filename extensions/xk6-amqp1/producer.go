package amqp1

import (
	"context"
	"math"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// producer has a link, to which one goroutine gives messages, each of which the link keeps until it is on the network, and a second goroutine
// that awaits the broker's answers.
type producer struct {
	conn     *conn
	topic    string
	link     *redial.Link[*outLink]
	defaults properties
	envelope envelope // only the goroutine that sends uses it
	answers  answers
	requests *requests

	life context.Context // ends when Close gives up waiting
	stop context.CancelCauseFunc
	over chan struct{} // closed when every message is done
	out  *outbox.Outbox[outgoing]
}

// outgoing is a message that was not sent yet.
type outgoing struct {
	message *driver.Message
	done    driver.Done
	i       int
	asking  *asking // nil where it is no request
}

// outLink is a link to send on, with its session.
type outLink struct {
	session *amqp.Session
	sender  *amqp.Sender
	on      *connection
	lost    bool // only the goroutine that sends uses it
}

// NewProducer opens a link to the topic's address, and fails where the broker has none.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	p := &producer{
		conn: c, topic: config.Topic, defaults: properties{}.with(config.Options),
		over: make(chan struct{}), out: outbox.New[outgoing](nil),
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	p.link = redial.New(p.open, func(o *outLink) bool { return o.lost || o.on.broken() })
	o, err := p.link.Get(ctx)
	if err != nil {
		p.stop(driver.ErrClosed)
		return nil, err
	}
	p.requests = newRequests(p)
	p.answers = answers{exchange: c.mode == pubsub && o.on.rabbitmq(), came: make(chan struct{}, 1)}
	go p.run()
	go func() {
		defer close(p.over)
		p.answers.await(p.life)
	}()
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
	if p.add(b, done, nil) {
		return
	}
	for i := range b {
		done(i, driver.ErrClosed)
	}
}

// add puts messages into the queue, unless the producer is closed.
func (p *producer) add(b driver.Batch, done driver.Done, asking *asking) bool {
	return p.out.Put(len(b), func(i int) outgoing { return outgoing{&b[i], done, i, asking} })
}

// run sends until Close, and what came before it.
func (p *producer) run() {
	defer p.answers.end()
	for all := p.out.Next(nil, math.MaxInt, 0); len(all) > 0; all = p.out.Next(all, math.MaxInt, 0) {
		p.sendAll(all)
	}
}

// sendAll sends messages over one link. Where there is none to be had, or it is lost, none of them is tried again.
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
				m.done(m.i, p.because(err))
			}
		}
		if !o.lost {
			return
		}
	}
	for _, m := range all {
		m.done(m.i, p.because(err))
	}
}

// send writes a message to the network, as soon as the broker gives credit for it, and has its answer awaited.
func (p *producer) send(o *outLink, m outgoing) error {
	if err := p.envelope.fill(m.message, p.defaults); err != nil {
		return err
	}
	if m.asking != nil {
		p.envelope.ask(m.asking)
	}
	receipt, err := o.sender.SendWithReceipt(p.life, &p.envelope.Message, nil)
	if err != nil {
		o.lost = closedBelow(err)
		return err
	}
	p.answers.add(answer{receipt, m.done, m.i})
	return nil
}

// abandonLost ends the session of a link that is gone, where that is all that is.
func (p *producer) abandonLost(o *outLink) {
	if !o.lost {
		return
	}
	ctx, cancel := context.WithTimeout(p.life, p.conn.timeout)
	defer cancel()
	_ = o.session.Close(ctx)
}

// because prefers the reason for which the producer gave up to the error that this led to.
func (p *producer) because(err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(p.life); cause != nil {
		return cause
	}
	return err
}

// Close waits for what was sent. What remains when ctx ends fails with its error.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close()
	select {
	case <-p.over:
	case <-ctx.Done():
		p.stop(ctx.Err())
		<-p.over
	}
	p.stop(driver.ErrClosed)
	p.requests.close(ctx)
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
