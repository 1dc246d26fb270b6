package nats

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// coreConn is a connection of the driver "nats".
type coreConn struct{ *conn }

func openCore(ctx context.Context, t driver.Target) (driver.Conn, error) {
	c, err := dial(ctx, t)
	if err != nil {
		return nil, err
	}
	return coreConn{c}, nil
}

// NewProducer implements [driver.Conn].
func (c coreConn) NewProducer(_ context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	p := &coreProducer{conn: c.conn, subject: config.Topic}
	c.watch(p)
	return p, nil
}

// coreProducer publishes without confirmation.
type coreProducer struct {
	conn    *conn
	subject string
	closed  atomic.Bool
	refusal atomic.Pointer[error] // what the server said about an earlier message
}

// Send implements [driver.Producer]. A message is done when it is in nats.go's buffer.
func (p *coreProducer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	err := ctx.Err()
	if p.closed.Load() {
		err = driver.ErrClosed
	} else if refusal := p.refusal.Swap(nil); refusal != nil {
		err = *refusal
	}
	for i := range b {
		if err != nil {
			done(i, err)
			continue
		}
		done(i, publish(p.conn.nc, p.subject, "", &b[i]))
	}
}

// Request implements [driver.Requester].
func (p *coreProducer) Request(ctx context.Context, m driver.Message) (driver.Message, error) {
	if p.closed.Load() {
		return driver.Message{}, driver.ErrClosed
	}
	out := nats.Msg{Subject: p.subject, Data: m.Body}
	if len(m.Headers) > 0 {
		out.Header = nats.Header{}
		if err := setHeaders(out.Header, m.Headers); err != nil {
			return driver.Message{}, err
		}
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	in, err := p.conn.nc.RequestMsgWithContext(ctx, &out)
	if err != nil {
		return driver.Message{}, err
	}
	return coreMessage(delivery{in, driver.Now()}), nil
}

// Close implements [driver.Producer]. It returns when the server has read all messages.
func (p *coreProducer) Close(ctx context.Context) error {
	if p.closed.Swap(true) {
		return nil
	}
	p.conn.unwatch(p)
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	return p.conn.nc.FlushWithContext(ctx)
}

func (p *coreProducer) lost(error) {}
func (p *coreProducer) regained()  {}

// failed keeps a refusal for the next Send, because the server does not name the message.
func (p *coreProducer) failed(_ *nats.Subscription, err error) {
	if denies(err, "Publish", p.subject) {
		p.refusal.Store(&err)
	}
}

// NewConsumer implements [driver.Conn].
func (c coreConn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	if config.Start != driver.StartNew {
		return nil, fmt.Errorf("%w: core NATS keeps no messages to start from", errors.ErrUnsupported)
	}
	k := &coreConsumer{
		conn: c.conn,
		most: amount{config.Options.Int("pendingMessages"), config.Options.Int("pendingBytes")},
	}
	k.inbox = inbox.New(k.hand)
	var err error
	if config.Group == "" {
		k.sub, err = c.nc.Subscribe(config.Topic, k.deliver)
	} else {
		k.sub, err = c.nc.QueueSubscribe(config.Topic, config.Group, k.deliver)
	}
	if err != nil {
		return nil, err
	}
	// nats.go's own queue has no limits; the inbox has them, so that each dropped message is
	// counted.
	if err = k.sub.SetPendingLimits(-1, -1); err == nil {
		err = c.subscribed(ctx, config.Topic)
	}
	if err != nil {
		_ = k.sub.Unsubscribe()
		return nil, err
	}
	c.watch(k)
	return k, nil
}

// coreConsumer is one subscription.
type coreConsumer struct {
	conn  *conn
	sub   *nats.Subscription
	inbox *inbox.Inbox[delivery]

	most    amount       // that may wait
	arrived amount       // in all; the callback's
	left    atomic.Int64 // messages that were received, of those that arrived
	bytes   atomic.Int64 // their payloads
	dropped atomic.Int64 // messages that had no room, until Receive has told
}

// delivery is a message and when the driver saw it, by driver.Now.
type delivery struct {
	msg *nats.Msg
	at  int64
}

// amount is a number of messages and of the bytes of their payloads.
type amount struct{ messages, bytes int64 }

// deliver is nats.go's callback. It drops messages without room.
func (k *coreConsumer) deliver(msg *nats.Msg) {
	at, size := driver.Now(), int64(len(msg.Data))
	if k.arrived.messages-k.left.Load() >= k.most.messages || k.arrived.bytes-k.bytes.Load()+size > k.most.bytes {
		if k.dropped.Add(1) == 1 {
			k.inbox.Fail(nats.ErrSlowConsumer)
		}
		return
	}
	k.arrived.messages++
	k.arrived.bytes += size
	k.inbox.Put(delivery{msg, at})
}

// Receive implements [driver.Consumer]. After messages were dropped it returns an error with their
// number that wraps [nats.ErrSlowConsumer].
func (k *coreConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for {
		if k.dropped.Load() > 0 {
			return 0, fmt.Errorf("%w: %d", nats.ErrSlowConsumer, k.dropped.Swap(0))
		}
		n, err := k.inbox.Receive(ctx, b)
		if err != nats.ErrSlowConsumer { //nolint:errorlint // this very one, which deliver wakes us with
			return n, err
		}
	}
}

func (k *coreConsumer) hand(b driver.Batch, arrived []delivery) {
	var size int64
	for i, d := range arrived {
		b[i] = coreMessage(d)
		size += int64(len(d.msg.Data))
	}
	k.left.Add(int64(len(arrived)))
	k.bytes.Add(size)
}

func coreMessage(d delivery) driver.Message {
	return driver.Message{
		Body:     d.msg.Data,
		Headers:  headersOf(d.msg.Header),
		Topic:    d.msg.Subject,
		Received: d.at,
		Token:    d.msg,
	}
}

// Settle implements [driver.Consumer]. Core NATS has no settlements.
func (k *coreConsumer) Settle(context.Context, driver.Batch, driver.Outcome) error {
	return errors.ErrUnsupported
}

// Reply implements [driver.Replier].
func (k *coreConsumer) Reply(_ context.Context, to, reply driver.Message) error {
	msg, ok := to.Token.(*nats.Msg)
	switch {
	case !ok:
		return errForeign
	case msg.Reply == "":
		return nats.ErrMsgNoReply
	}
	return publish(k.conn.nc, msg.Reply, "", &reply)
}

// Close implements [driver.Consumer].
func (k *coreConsumer) Close(context.Context) error {
	k.conn.unwatch(k)
	k.inbox.Close()
	if err := k.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrBadSubscription) &&
		!errors.Is(err, nats.ErrConnectionClosed) {
		return err
	}
	return nil
}

// lost reports that messages may be missing, because nothing keeps them for an absent subscriber.
func (k *coreConsumer) lost(err error) { k.inbox.Fail(fmt.Errorf("%w: %w", nats.ErrDisconnected, err)) }
func (k *coreConsumer) regained()      {}

func (k *coreConsumer) failed(sub *nats.Subscription, err error) {
	if sub == k.sub || denies(err, "Subscription", k.sub.Subject) {
		k.inbox.Fail(err)
	}
}
