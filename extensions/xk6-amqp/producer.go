package amqp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer publishes on a channel of its own, and opens another one when that is lost.
type producer struct {
	conn        *conn
	exchange    string
	key         string
	routeByKey  bool
	mandatory   bool
	persistent  bool
	failBlocked bool
	limit       int // of a body, in bytes
	properties  properties

	mu     sync.Mutex
	outbox *outbox // nil while there is no channel
	lost   error   // why there is none
	closed bool
	table  amqp.Table // reused; it is written out before Publish returns

	life    context.Context // ends with Close, and with the connection: no more channels are opened then
	stop    context.CancelFunc
	abandon chan struct{} // closed by Close when its context ends: fails what is outstanding
	reason  error         // set before abandon is closed
	done    chan struct{} // closed when nothing is outstanding any more and nothing will be

	requests requests
}

func (c *conn) NewProducer(ctx context.Context, cfg driver.ProducerConfig) (driver.Producer, error) {
	o, to := cfg.Options, c.route(cfg)
	p := &producer{
		conn:        c,
		exchange:    to.exchange,
		key:         to.key,
		routeByKey:  to.byKey,
		mandatory:   o.Bool("mandatory"),
		persistent:  o.Bool("persistent"),
		failBlocked: o.String("blocked") == "fail",
		limit:       int(o.Int("maxMessageBytes")),
		properties:  properties{}.with(o),
		table:       amqp.Table{},
		abandon:     make(chan struct{}),
		done:        make(chan struct{}),
	}
	p.life, p.stop = context.WithCancel(c.life)
	p.requests.producer = p
	if err := short(p.key, p.exchange); err != nil {
		p.stop()
		return nil, err
	}
	box, err := p.open(ctx)
	if err != nil {
		p.stop()
		return nil, err
	}
	p.outbox = box
	c.running.Go(p.run)
	return p, nil
}

// open opens a channel in confirm mode.
func (p *producer) open(ctx context.Context) (*outbox, error) {
	returns := make(chan amqp.Return, 64)
	ch, err := p.conn.publishing.channel(ctx, func(ch *amqp.Channel) error {
		ch.NotifyReturn(returns)
		return ch.Confirm(false)
	})
	if err != nil {
		return nil, err
	}
	return newOutbox(ch, returns), nil
}

// run resolves what is outstanding and opens the channel again when it is lost, until Close.
func (p *producer) run() {
	defer close(p.done)
	for box := p.outbox; box != nil; box = p.reopen() {
		p.resolve(box)
	}
}

// reopen opens a channel, as often as it takes. Until then Send fails with the latest reason. It gives nil after Close.
func (p *producer) reopen() *outbox {
	box, ok := again(p.life, p.conn.patience, p.open, func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lost = err
	})
	if !ok {
		return nil
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.outbox = box
	}
	p.mu.Unlock()
	if closed {
		_ = box.Close() // Close came first, and did not see this channel
		return nil
	}
	return box
}

func (p *producer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	for i := range b {
		if err := p.send(ctx, &b[i], i, done); err != nil {
			done(i, err)
		}
	}
}

func (p *producer) send(ctx context.Context, m *driver.Message, i int, done driver.Done) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(m.Body) > p.limit {
		return p.tooLarge(m.Body)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		box := p.outbox
		switch {
		case p.closed:
			return driver.ErrClosed
		case box == nil:
			return p.lost
		case p.failBlocked && box.of.blocked() != nil:
			return box.of.blocked()
		case !box.of.socket.full():
			return p.publish(box, m, i, done)
		}
		p.mu.Unlock()
		err := box.of.socket.ready(ctx)
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// publish hands a message to the client library, which does not wait for the network, and notes it as outstanding.
func (p *producer) publish(box *outbox, m *driver.Message, i int, done driver.Done) error {
	if p.routeByKey && len(m.Key) > maxShort {
		return rejectedError(fmt.Sprintf("a routing key has at most %d bytes", maxShort))
	}
	headers, err := fill(p.table, m.Headers, p.typedHeaders(m), box.of.Config.FrameSize)
	if err != nil {
		return err
	}
	publishing := amqp.Publishing{Headers: headers, Body: m.Body}
	if p.persistent {
		publishing.DeliveryMode = amqp.Persistent
	}
	p.describe(&publishing, m)
	if p.mandatory {
		publishing.MessageId = strconv.FormatUint(box.sequence+1, 10) // by which a return is told apart
	}
	confirmation, err := box.PublishWithDeferredConfirm(p.exchange, p.routing(m), p.mandatory, false, publishing)
	if err != nil {
		return box.explain(err)
	}
	box.sequence++
	box.add(outstanding{confirmation, done, i})
	return nil
}

// describe gives a message its properties, or else the producer's.
func (p *producer) describe(publishing *amqp.Publishing, m *driver.Message) {
	if m.Properties == nil {
		p.properties.on(publishing)
		return
	}
	own := p.properties.with(m.Properties)
	own.on(publishing)
}

// typedHeaders are those of a message, or else the producer's.
func (p *producer) typedHeaders(m *driver.Message) map[string]any {
	if _, own := m.Properties["typedHeaders"]; own {
		return m.Properties.Map("typedHeaders")
	}
	return p.properties.headers
}

// routing is the routing key of a message.
func (p *producer) routing(m *driver.Message) string {
	if p.routeByKey && len(m.Key) > 0 {
		return string(m.Key)
	}
	return p.key
}

func (p *producer) tooLarge(body []byte) error {
	return rejectedError(fmt.Sprintf("a body of %d bytes is larger than maxMessageBytes, %d", len(body), p.limit))
}

func (p *producer) Close(ctx context.Context) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.done
		return nil
	}
	p.closed = true
	box := p.outbox
	p.mu.Unlock()
	p.stop()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.reason = ctx.Err()
		if box != nil {
			if blocked := box.of.blocked(); blocked != nil {
				p.reason = blocked
			}
		}
		close(p.abandon)
		<-p.done
	}
	err := p.requests.close(ctx)
	if box != nil && !box.IsClosed() {
		err = errors.Join(err, box.end(ctx))
	}
	return err
}

// As lends the current *amqp091.Channel.
func (p *producer) As(target any) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outbox != nil && driver.As(target, p.outbox.channel.Channel)
}
