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

// producer publishes on a channel of its own, and opens another one after it is lost.
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
	lost   error   // the reason
	closed bool
	table  amqp.Table // reused: Publish copies it

	life    context.Context // ends with Close, and with the connection
	stop    context.CancelFunc
	abandon chan struct{} // closed if Close's context ends: outstanding messages fail
	reason  error         // set before abandon is closed
	done    chan struct{} // closed after the last outstanding message

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

// run resolves outstanding messages, and opens the channel again after it is lost, until Close.
func (p *producer) run() {
	defer close(p.done)
	for box := p.outbox; box != nil; box = p.reopen() {
		p.resolve(box)
	}
}

// reopen opens a channel, as often as necessary. Until then Send fails with the last reason. It
// returns nil after Close.
func (p *producer) reopen() *outbox {
	box, ok := again(p.life, p.conn.reopenTimeout, p.open, func(err error) {
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
		_ = box.Close() // Close was called before and did not see this channel
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
		case p.failBlocked && box.conn.blocked() != nil:
			return box.conn.blocked()
		case !box.conn.socket.full():
			return p.publish(box, m, i, done)
		}
		p.mu.Unlock()
		err := box.conn.socket.ready(ctx)
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// publish hands a message to the client library, which does not wait for the network.
func (p *producer) publish(box *outbox, m *driver.Message, i int, done driver.Done) error {
	if p.routeByKey && len(m.Key) > maxShort {
		return tooLong(string(m.Key))
	}
	headers, err := fill(p.table, m.Headers, p.typedHeaders(m), box.conn.Config.FrameSize)
	if err != nil {
		return err
	}
	publishing := amqp.Publishing{Headers: headers, Body: m.Body}
	if p.persistent {
		publishing.DeliveryMode = amqp.Persistent
	}
	p.describe(&publishing, m)
	if p.mandatory {
		publishing.MessageId = strconv.FormatUint(box.sequence+1, 10) // identifies a return
	}
	confirmation, err := box.PublishWithDeferredConfirm(p.exchange, p.routing(m), p.mandatory, false, publishing)
	if err != nil {
		return box.explain(err)
	}
	box.sequence++
	box.add(outstanding{confirmation, done, i})
	return nil
}

// describe sets the properties of a message, or else the producer's.
func (p *producer) describe(publishing *amqp.Publishing, m *driver.Message) {
	if m.Properties == nil {
		p.properties.apply(publishing)
		return
	}
	own := p.properties.with(m.Properties)
	own.apply(publishing)
}

// typedHeaders returns the typed headers of a message, or else the producer's.
func (p *producer) typedHeaders(m *driver.Message) map[string]any {
	if _, own := m.Properties["typedHeaders"]; own {
		return m.Properties.Map("typedHeaders")
	}
	return p.properties.headers
}

// routing returns the routing key of a message.
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
			if blocked := box.conn.blocked(); blocked != nil {
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
