package kafka

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// kmqConsumer is a member of a consumer group that commits what it has begun with, and settles each message by a marker.
type kmqConsumer struct {
	*inbox.Inbox[*delivery]
	member
	queue   queue
	owner   *kmqConn
	confirm bool
	room    *inbox.Room
	polling sync.WaitGroup
	tracker *tracker

	polled []*kgo.Record // that the group has not been told of yet

	state  sync.Mutex
	begun  map[*batch]struct{} // of which not all is settled
	failed error               // of a marker that nobody waited for
	report func(o driver.Outcome, n int, err error)
	closed bool
}

// batch is what was begun with at once.
type batch struct {
	deliveries []delivery
	open       int // of these, those that are not settled
	until      time.Time
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
	v := cfg.Options
	if err := checkProtocol(v); err != nil {
		return nil, err
	}
	q := c.queue(cfg.Topic, cfg.Group, v)
	if q.letters != "" {
		if _, err := c.metadata(ctx, q.letters); err != nil {
			return nil, &driver.OptionError{Name: "deadLetterTopic", Err: err}
		}
	}
	if err := c.makeMarkersTopic(ctx, q); err != nil {
		return nil, err
	}
	partitions, err := c.partitions(ctx, cfg.Topic)
	if err != nil {
		return nil, err
	}
	var ends kadm.Offsets
	if cfg.Start == driver.StartNew {
		if ends, err = c.offsets(ctx, cfg.Topic, driver.StartNew); err == nil {
			err = c.anchor(ctx, cfg.Group, ends)
		}
		if err != nil {
			return nil, err
		}
	}
	k := &kmqConsumer{
		member: newMember(c.conn, cfg.Topic, cfg.Group), queue: q, owner: c, confirm: cfg.ConfirmSettle,
		room: inbox.NewRoom(cfg.Prefetch), begun: map[*batch]struct{}{},
	}
	if ends != nil {
		k.anchors = map[int32]int64{}
	}
	k.Inbox = inbox.New(hand)
	options := append(fetchOptionsOf(v), membershipOf(v)...)
	options = append(options, c.sendingAgain()...)
	if k.client, err = c.newClient(append(options,
		kgo.WithHooks(newStamp(partitions), &k.member),
		kgo.ConsumeTopics(cfg.Topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumerGroup(cfg.Group),
		kgo.AdjustFetchOffsetsFn(k.begin),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), // what was polled is committed before its partitions go
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { k.news(nil) }),
	)...); err != nil {
		return nil, err
	}
	err = k.await(ctx)
	if err == nil && ends != nil {
		err = k.anchored(ctx, ends)
	}
	if err == nil {
		k.tracker, err = c.newTracker(ctx, q, v, k.Fail)
	}
	if err != nil {
		k.drop()
		return nil, err
	}
	c.mu.Lock()
	c.consumers[k] = struct{}{}
	c.mu.Unlock()
	k.polling.Go(func() { k.Poll(k.room, cfg.Prefetch, k.fetch) })
	return k, nil
}

// sendingAgain are options for markers and for messages that are sent again. Each fails before its sender gives up waiting, and may be sent anew.
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

// fetch polls, writes start markers, commits, and only then gives messages to be received. What has failed half way is gone on with by the next call.
func (k *kmqConsumer) fetch(ctx context.Context, most int) ([]*delivery, error) {
	var err error
	if len(k.polled) == 0 {
		if k.polled, err = k.poll(ctx, most, k.polled[:0]); len(k.polled) == 0 {
			k.AllowRebalance() // which an error holds up as records do
			return nil, err
		}
	}
	mine := slices.DeleteFunc(slices.Clone(k.polled), func(r *kgo.Record) bool { return !k.queue.mine(r) })
	// Neither ends with the consumer: Close waits for what has begun, or aborts the client.
	if err := k.start(context.Background(), mine); err != nil {
		return nil, err
	}
	until := time.Now().Add(k.queue.redeliverAfter)
	if err = k.CommitRecords(context.Background(), k.polled...); err != nil && !lostMembership(err) && !noTopic(err) {
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
	err := k.ProduceSync(ctx, startMarkers(k.queue.markers, messages, k.queue.redeliverAfter)...).FirstErr()
	if noTopic(err) { // it was deleted with the topic, which is there again
		k.PurgeTopicsFromProducing(k.queue.markers)
		return errors.Join(err, k.owner.makeMarkersTopic(ctx, k.queue))
	}
	return err
}

// lostMembership reports whether a commit failed because the partitions are somebody else's.
func lostMembership(err error) bool {
	for _, lost := range []error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.FencedInstanceID, kerr.FencedMemberEpoch, kerr.RebalanceInProgress} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

func (k *kmqConsumer) deliver(messages []*kgo.Record, until time.Time) []*delivery {
	if len(messages) == 0 {
		return nil
	}
	b := &batch{deliveries: make([]delivery, len(messages)), open: len(messages), until: until}
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

// hand turns deliveries into messages, without the headers that are the protocol's.
func hand(b driver.Batch, came []*delivery) {
	n := 0
	for _, d := range came {
		n += len(d.record.Headers)
	}
	headers := make([]driver.Header, 0, n)
	for i, d := range came {
		headers = message(&b[i], d.record, headers)
		if d.attempt > 1 {
			b[i].Headers = slices.DeleteFunc(b[i].Headers, func(h driver.Header) bool { return h.Name == redeliveryCount || h.Name == redeliveryGroup })
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
