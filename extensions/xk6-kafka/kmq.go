package kafka

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// kmqConsumer is a member of a consumer group that commits the messages with a start marker, and
// settles each by an end marker.
type kmqConsumer struct {
	*inbox.Inbox[*delivery]
	member
	queue   queue
	confirm bool
	room    *inbox.Room
	polling sync.WaitGroup
	tracker *tracker
	failure failure // of a marker without a waiting Settle

	polled []*kgo.Record // and not committed

	state  sync.Mutex
	begun  map[*batch]struct{} // with unsettled messages
	report func(o driver.Outcome, n int, err error)
	closed bool
}

// batch holds the messages of one fetch.
type batch struct {
	deliveries []delivery
	unsettled  int
	until      time.Time // when trackers send it again
}

// delivery is a message that has a start marker.
type delivery struct {
	record   *kgo.Record
	attempt  int64
	batch    *batch
	settled  bool
	received bool
}

func (c *kmqConn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if cfg.Group == "" {
		cfg.Group = defaultGroup(cfg.Topic)
	}
	q := newQueue(cfg.Topic, cfg.Group, cfg.Options)
	if q.letters != "" {
		if _, err := c.metadata(ctx, q.letters); err != nil {
			return nil, &driver.OptionError{Name: "deadLetterTopic", Err: err}
		}
	}
	if err := c.makeMarkersTopic(ctx, q); err != nil {
		return nil, err
	}
	k := &kmqConsumer{
		member: newMember(c.conn, cfg.Topic, cfg.Group), queue: q, confirm: cfg.ConfirmSettle,
		room: inbox.NewRoom(cfg.Prefetch), begun: map[*batch]struct{}{}, Inbox: inbox.New(hand),
	}
	options, err := k.prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	options = append(options, c.sendingAgain()...)
	if k.client, err = c.newClient(append(options,
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), // polled messages are committed before their partitions are revoked
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { k.answer(nil) }),
	)...); err != nil {
		return nil, err
	}
	if err = k.await(ctx); err == nil {
		k.tracker, err = c.newTracker(ctx, q, cfg.Options, k.Fail)
	}
	if err != nil {
		k.drop()
		return nil, err
	}
	c.consumers.add(k, cfg.Topic, cfg.Group)
	k.polling.Go(func() { k.Poll(k.room, cfg.Prefetch, k.fetch) })
	return k, nil
}

// flush sends the buffered markers.
func (k *kmqConsumer) flush(ctx context.Context) error {
	return errors.Join(k.Flush(ctx), k.tracker.Flush(ctx))
}

// sendingAgain are the client's options for markers and copies of messages. They fail before the
// requests that wait for them, and may be sent again.
func (c *conn) sendingAgain() []kgo.Opt {
	return []kgo.Opt{
		kgo.RecordPartitioner(newPartitioner("sticky")),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(math.MaxInt32),
		kgo.RecordDeliveryTimeout(c.timeout),
		kgo.ProduceRequestTimeout(c.timeout),
		kgo.AllowIdempotentProduceCancellation(),
		kgo.BrokerMaxWriteBytes(1 << 30),
	}
}

// fetch polls, writes start markers, commits, and returns the messages. After a failure the next
// call continues with the polled messages.
func (k *kmqConsumer) fetch(ctx context.Context, most int) ([]*delivery, error) {
	var err error
	if len(k.polled) == 0 {
		if k.polled, err = k.poll(ctx, most, k.polled[:0]); len(k.polled) == 0 {
			k.AllowRebalance() // an error blocks it too
			return nil, err
		}
	}
	mine := slices.DeleteFunc(slices.Clone(k.polled), func(r *kgo.Record) bool { return !k.queue.mine(r) })
	// Not ctx: Close waits for the markers and the commit, or aborts the client.
	if err := k.start(context.Background(), mine); err != nil {
		return nil, err
	}
	until := time.Now().Add(k.queue.redeliverAfter)
	if err = k.CommitRecords(context.Background(), k.polled...); err != nil && !lostMembership(err) {
		return nil, err
	}
	clear(k.polled)
	k.polled = k.polled[:0]
	k.AllowRebalance()
	if err != nil {
		return nil, nil //nolint:nilerr // another member reads them again
	}
	return k.deliver(mine, until), nil
}

// start writes start markers and waits for them.
func (k *kmqConsumer) start(ctx context.Context, messages []*kgo.Record) error {
	return k.ProduceSync(ctx, startMarkers(k.queue.markers, messages, k.queue.redeliverAfter)...).FirstErr()
}

// lostMembership reports whether a commit failed because the partitions are another member's.
func lostMembership(err error) bool {
	return errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) ||
		errors.Is(err, kerr.FencedMemberEpoch) || errors.Is(err, kerr.RebalanceInProgress)
}

func (k *kmqConsumer) deliver(messages []*kgo.Record, until time.Time) []*delivery {
	if len(messages) == 0 {
		return nil
	}
	b := &batch{deliveries: make([]delivery, len(messages)), unsettled: len(messages), until: until}
	all := make([]*delivery, len(messages))
	for i, r := range messages {
		b.deliveries[i] = delivery{record: r, attempt: attempt(r), batch: b}
		all[i] = &b.deliveries[i]
	}
	k.state.Lock()
	k.begun[b] = struct{}{}
	k.state.Unlock()
	return all
}

// hand converts deliveries to messages, without the headers of the protocol.
func hand(b driver.Batch, deliveries []*delivery) {
	n := 0
	for _, d := range deliveries {
		n += len(d.record.Headers)
	}
	headers := make([]driver.Header, 0, n)
	for i, d := range deliveries {
		headers = message(&b[i], d.record, headers)
		if d.attempt > 1 {
			b[i].Headers = slices.DeleteFunc(b[i].Headers, func(h driver.Header) bool { return ours(h.Name) })
		}
		b[i].Attempt = int32(min(d.attempt, math.MaxInt32)) //gosec:disable G115 -- a count, far below the limit
		b[i].Token = d
		d.received = true
	}
}

func kmqPlace(m *driver.Message) driver.Place {
	if d, ok := m.Token.(*delivery); ok {
		return placeOf(d.record)
	}
	return driver.Place{}
}
