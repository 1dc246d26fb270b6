package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// maxWaiting is how many requests for messages a durable consumer takes from all its members.
const maxWaiting = 8192

// NewConsumer implements [driver.Conn]: a durable consumer for a group, else an ephemeral one.
func (c streamConn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (_ driver.Consumer, err error) {
	ctx, done := c.ask(ctx)
	defer done(&err)
	stream, err := c.stream(ctx, config.Topic)
	if err != nil {
		return nil, err
	}
	remote, err := subscribe(ctx, stream, config)
	if err != nil {
		return nil, err
	}
	info := remote.CachedInfo()
	k := &streamConsumer{
		conn:     c.conn,
		js:       c.js,
		remote:   remote,
		prefetch: config.Prefetch,
		held:     map[*nats.Msg]struct{}{},
		next:     c.api + "CONSUMER.MSG.NEXT." + info.Stream + "." + info.Name,
		nak:      []byte("-NAK"),
		gone:     make(chan struct{}),
		stop:     func() {},
	}
	k.inbox = inbox.New(k.hand)
	if delay := config.Options.Duration("nakDelay"); delay > 0 {
		k.nak = fmt.Appendf(nil, `-NAK {"delay": %d}`, delay.Nanoseconds())
	}
	if err := k.join(ctx, config.ConfirmSettle); err != nil {
		return nil, errors.Join(err, k.leave(ctx))
	}
	return k, nil
}

// subscribe creates the server's side of the consumer, or finds it.
func subscribe(ctx context.Context, stream jetstream.Stream, config driver.ConsumerConfig) (jetstream.Consumer, error) {
	o := config.Options
	settings := jetstream.ConsumerConfig{
		Durable:       nameFor(config.Group),
		FilterSubject: config.Topic,
		DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       o.Duration("ackWait"),
		MaxAckPending: int(o.Int("maxAckPending")),
		MaxDeliver:    int(o.Int("maxDeliver")),
		MaxWaiting:    maxWaiting,
	}
	// A work queue delivers all its messages.
	if config.Start == driver.StartEarliest || stream.CachedInfo().Config.Retention == jetstream.WorkQueuePolicy {
		settings.DeliverPolicy = jetstream.DeliverAllPolicy
	}
	if config.Group == "" {
		settings.InactiveThreshold = o.Duration("inactiveThreshold")
	}
	k, err := stream.CreateConsumer(ctx, settings)
	if !errors.Is(err, jetstream.ErrConsumerExists) {
		return k, err
	}
	// The group exists with other settings, which hold for all its members.
	if k, err = stream.Consumer(ctx, settings.Durable); err != nil {
		return nil, err
	}
	has := k.CachedInfo().Config
	if has.FilterSubject != config.Topic {
		return nil, fmt.Errorf("%w: group %q consumes %q", jetstream.ErrConsumerExists, config.Group, has.FilterSubject)
	}
	if has.AckPolicy != jetstream.AckExplicitPolicy {
		return nil, fmt.Errorf("%w: group %q does not settle single messages", jetstream.ErrConsumerExists, config.Group)
	}
	return k, nil
}

// streamConsumer is one member of a pull consumer. It asks for as many messages as its prefetch has
// room for, and again when half of them are settled. nats.go's continuous pull asks again before
// messages are settled, and its Fetch makes a subscription for each request.
type streamConsumer struct {
	conn     *conn
	js       jetstream.JetStream
	remote   jetstream.Consumer
	prefetch int
	next     string // where requests go
	nak      []byte
	sub      *nats.Subscription
	confirms *replies // nil where settlements are not confirmed
	inbox    *inbox.Inbox[delivery]
	seen     atomic.Int64  // when the server was last heard of
	gone     chan struct{} // closed when no message comes any more
	stop     func()        // ends attend

	missing   atomic.Bool  // the server says that there is no such consumer
	requested atomic.Int64 // messages that the server was asked for and has not delivered

	mu     sync.Mutex
	closed bool
	taken  int                    // messages that the server was asked for and that are not settled
	held   map[*nats.Msg]struct{} // received and not settled
}

// join subscribes and asks for the first messages.
func (k *streamConsumer) join(ctx context.Context, confirm bool) (err error) {
	nc := k.conn.nc
	if k.sub, err = nc.Subscribe(nc.NewInbox(), k.deliver); err != nil {
		return err
	}
	k.sub.SetClosedHandler(func(string) { close(k.gone) })
	if err = k.sub.SetPendingLimits(-1, -1); err != nil { // the prefetch is the limit
		return err
	}
	if confirm {
		if k.confirms, err = newReplies(nc, k.remote.CachedInfo().Config.AckWait, nats.ErrTimeout, settled); err != nil {
			return err
		}
	}
	if err = k.conn.subscribed(ctx, k.sub.Subject); err != nil {
		return err
	}
	if err = k.reachable(ctx); err != nil {
		return err
	}
	k.conn.watch(k)
	life, stop := context.WithCancel(context.Background())
	k.stop = stop
	go k.attend(life)
	return k.pull()
}

// reachable waits until requests reach the consumer. In a cluster its leader may be another server,
// and a request has no responders until this one has heard of it.
func (k *streamConsumer) reachable(ctx context.Context) error {
	for {
		_, err := k.conn.nc.RequestWithContext(ctx, k.next, []byte("{"))
		if !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		if err := wake(ctx, reachableAgain); err != nil {
			return err
		}
	}
}

// reachableAgain is the pause before a server that has not heard of a consumer is asked again.
const reachableAgain = 10 * time.Millisecond

// wake returns after a pause, or with ctx's error.
func wake(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Receive implements [driver.Consumer].
func (k *streamConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return k.inbox.Receive(ctx, b)
}

// hand holds received messages until they are settled.
func (k *streamConsumer) hand(b driver.Batch, arrived []delivery) {
	for i, d := range arrived {
		b[i] = coreMessage(d)
		b[i].Attempt = int32(min(fromReply(d.msg.Reply, tokenDelivered), math.MaxInt32))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range arrived {
		k.held[d.msg] = struct{}{}
	}
}

// Positions in a message's reply subject, in the form without domain and account:
// $JS.ACK[.<domain>.<account>].<stream>.<consumer>.<delivered>.<stream sequence>.<consumer
// sequence>.<time>.<pending>.
const (
	tokenDelivered        = 4
	tokenConsumerSequence = 6
	tokensWithoutDomain   = 9
)

// fromReply reads a number out of a message's reply subject.
func fromReply(reply string, token int) uint64 {
	if strings.Count(reply, ".") >= tokensWithoutDomain {
		token += 2
	}
	for ; token > 0; token-- {
		_, reply, _ = strings.Cut(reply, ".")
	}
	reply, _, _ = strings.Cut(reply, ".")
	n, _ := strconv.ParseUint(reply, 10, 64)
	return n
}

// Close implements [driver.Consumer]. Held messages are requeued at once; messages on the way are
// delivered again after ackWait.
func (k *streamConsumer) Close(ctx context.Context) error {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil
	}
	k.closed = true
	k.mu.Unlock()
	return k.leave(ctx)
}

func (k *streamConsumer) leave(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	k.conn.unwatch(k)
	k.stop()
	k.inbox.Close()
	info := k.remote.CachedInfo()
	ephemeral := info.Config.Durable == ""
	if k.sub != nil {
		k.unsubscribe(ctx, !ephemeral)
	}
	if k.confirms != nil {
		k.confirms.close(ctx)
	}
	if !k.conn.nc.IsConnected() {
		return nil // the server notices by itself
	}
	if ephemeral {
		err := k.js.DeleteConsumer(ctx, info.Stream, info.Name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil
		}
		return err
	}
	for _, m := range k.unsettled() {
		if err := k.conn.nc.Publish(m.Reply, []byte("-NAK")); err != nil {
			return err
		}
	}
	return k.conn.nc.FlushWithContext(ctx)
}

// unsubscribe ends the flow of messages. With drained it waits for those that the server has sent.
func (k *streamConsumer) unsubscribe(ctx context.Context, drained bool) {
	if !drained || !k.conn.nc.IsConnected() || k.sub.Drain() != nil {
		_ = k.sub.Unsubscribe()
		return
	}
	select {
	case <-k.gone:
	case <-ctx.Done():
		_ = k.sub.Unsubscribe()
	}
}

// unsettled returns the messages that this member has, in the order of the stream.
func (k *streamConsumer) unsettled() []*nats.Msg {
	var all []*nats.Msg
	for _, d := range k.inbox.Waiting() {
		all = append(all, d.msg)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all = slices.AppendSeq(all, maps.Keys(k.held))
	slices.SortFunc(all, func(a, b *nats.Msg) int {
		return cmp.Compare(fromReply(a.Reply, tokenConsumerSequence), fromReply(b.Reply, tokenConsumerSequence))
	})
	return all
}
