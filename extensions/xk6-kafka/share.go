package kafka

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// shareConsumer is a member of a share group.
type shareConsumer struct {
	reader
	group   string
	confirm bool
	room    *inbox.Room
	batch   int                // the most records of a fetch
	joined  context.CancelFunc // called when the group has begun with this member's partitions
	answers atomic.Int32       // the fetches to be answered before; 0 if one must be sent only
	failure failure            // of the group, or of an acknowledgement

	mu     sync.Mutex
	lots   map[int32]*lot
	report func(o driver.Outcome, n int, err error)
	closed bool

	records []*kgo.Record // polled and not yet received
	spare   []*kgo.Record // the array of records
}

// beginning is held by the one consumer that begins with a topic of an unanchored share group.
var beginning = make(chan struct{}, 1)

func (c *conn) newShareConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if cfg.Group == "" {
		cfg.Group = defaultGroup(cfg.Topic)
	}
	s := &shareConsumer{
		reader: reader{conn: c, topic: cfg.Topic}, group: cfg.Group, confirm: cfg.ConfirmSettle,
		room: inbox.NewRoom(cfg.Prefetch), batch: max(1, cfg.Prefetch/4), lots: map[int32]*lot{},
	}
	anchored, err := c.anchorShare(ctx, cfg.Topic, cfg.Group, cfg.Start)
	if err != nil {
		return nil, err
	}
	if err := c.checkRecreated(ctx, cfg.Topic, cfg.Group); err != nil && !errors.Is(err, errRecreated) {
		return nil, err
	}
	if anchored {
		err = s.join(ctx, c, cfg)
	} else {
		err = s.begin(ctx, c, cfg)
	}
	if err != nil {
		return nil, err
	}
	c.consumers.add(s, cfg.Topic, cfg.Group)
	return s, nil
}

// begin joins a group that begins with the topic when its members first fetch. One consumer does so
// at a time, so that the first has all partitions. After it the group is anchored.
func (s *shareConsumer) begin(ctx context.Context, c *conn, cfg driver.ConsumerConfig) error {
	select {
	case beginning <- struct{}{}:
		defer func() { <-beginning }()
	case <-ctx.Done():
		return ctx.Err()
	}
	anchored, err := c.anchorShare(ctx, cfg.Topic, cfg.Group, cfg.Start)
	if err != nil {
		return err
	}
	if !anchored {
		leaders, err := c.leaders(ctx, cfg.Topic)
		if err != nil {
			return err
		}
		// The library asks one broker after another, and a broker may answer first before it
		// begins.
		s.answers.Store(int32(2 * leaders)) //gosec:disable G115 -- brokers are few
	}
	return s.join(ctx, c, cfg)
}

// join returns when this member has partitions.
func (s *shareConsumer) join(ctx context.Context, c *conn, cfg driver.ConsumerConfig) (err error) {
	joining, joined := context.WithCancel(ctx)
	defer joined()
	s.joined = joined
	s.client, err = c.newClient(append(fetchOptionsOf(cfg.Options),
		kgo.WithHooks(&lender{}, s),
		kgo.ConsumeTopics(cfg.Topic),
		kgo.ShareGroup(cfg.Group),
		kgo.ShareMaxRecords(int32(s.batch)), //gosec:disable G115 -- as many as fit into memory
		kgo.ShareMaxRecordsStrict(),         // no fetch without a Receive: the broker's lock would run already
		kgo.ShareAckCallback(s.acknowledged),
	)...)
	if err != nil {
		return err
	}
	// The library fetches when it is polled and the group has assigned partitions.
	s.records, err = s.poll(joining, s.batch, nil)
	s.room.Take(len(s.records))
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	if err == nil {
		err = s.failure.take()
	}
	if err != nil {
		s.drop()
	}
	return err
}

const shareFetchKey = 78 // of the protocol's requests

// OnBrokerWrite is the library's hook for a request that has been sent.
func (s *shareConsumer) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key == shareFetchKey && err == nil && s.answers.Load() == 0 {
		s.joined()
	}
}

// OnBrokerRead is the library's hook for a request that has been answered.
func (s *shareConsumer) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key == shareFetchKey && err == nil && s.answers.Load() > 0 && s.answers.Add(-1) == 0 {
		s.joined()
	}
}

// OnGroupManageError is the library's hook for a member that the group refuses.
func (s *shareConsumer) OnGroupManageError(err error) {
	if kind := classify(err); kind != driver.Disconnected && kind != driver.Timeout {
		s.failure.set(err)
		s.joined()
	}
}

func (s *shareConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	if len(s.records) == 0 {
		if _, err := s.room.Reserve(ctx, s.batch, s.batch); err != nil { // a whole fetch must have room
			return 0, err
		}
		var err error
		s.records, err = s.poll(ctx, min(len(b), s.batch), s.spare[:0])
		s.room.Give(s.batch - len(s.records))
		if err != nil {
			return 0, err
		}
		s.spare = s.records
	}
	records := s.records[:min(len(b), len(s.records))]
	headers := make([]driver.Header, 0, s.headers)
	for i, r := range records {
		headers = message(&b[i], r, headers)
		if l, ok := r.Context.(*lease); ok {
			b[i].Attempt = l.attempt
		}
	}
	clear(records)
	s.records = s.records[len(records):]
	return len(records), nil
}

// Settle acknowledges, releases or rejects each message. With confirmation it returns the broker's
// answer. Otherwise acks go with the next fetch, a second later at the latest, the others at once.
func (s *shareConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if statuses[o] == 0 {
		return errors.ErrUnsupported
	}
	records := make([]*kgo.Record, 0, len(b))
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return driver.ErrClosed
	}
	for i := range b {
		r, _ := b[i].Token.(*kgo.Record)
		if r == nil {
			continue
		}
		if l, ok := r.Context.(*lease); ok && !l.settled {
			l.settled = true
			records = append(records, r)
		}
	}
	s.settle(records, o)
	s.mu.Unlock()
	if len(records) == 0 {
		return nil
	}
	s.room.Give(len(records))
	switch {
	case s.confirm:
		if err := s.FlushAcks(ctx); err != nil {
			return err
		}
	case o != driver.Ack:
		_ = s.FlushAcks(ended) // starts it and does not wait
	}
	return s.failure.take()
}

func (s *shareConsumer) flush(ctx context.Context) error { return s.FlushAcks(ctx) }

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Close leaves the group. The broker delivers the unsettled messages to other members. It returns
// the error of an acknowledgement without a waiting Settle.
func (s *shareConsumer) Close(ctx context.Context) error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return nil
	}
	s.conn.consumers.remove(s)
	s.room.Close()
	_ = s.FlushAcks(ctx)
	s.end(ctx)
	return s.failure.take()
}
