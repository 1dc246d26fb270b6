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
	id      [16]byte           // of the topic
	same    time.Time          // when it was last known to be that one
	batch   int                // how many records a fetch may bring
	joined  context.CancelFunc // called when this member has partitions, and the group has begun with them
	answers atomic.Int32       // how many fetches must be answered until then; 0: it is enough that one is sent

	mu     sync.Mutex
	failed error // of the group, or of an acknowledgement
	lots   map[int32]*lot
	report func(o driver.Outcome, n int, err error)
	closed bool

	records []*kgo.Record // polled and not yet received
	spare   []*kgo.Record // the array of records
}

func (c *conn) newShareConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if cfg.Group == "" {
		cfg.Group = defaultGroup(cfg.Topic)
	}
	if err := c.sameTopic(ctx, cfg.Topic, cfg.Group); errors.Is(err, errBeganElsewhere) {
		cfg.Start = driver.StartEarliest // what is in the new topic came after the group began with the old one
	}
	anchored, err := c.anchorShare(ctx, cfg.Topic, cfg.Group, cfg.Start)
	if err != nil {
		return nil, err
	}
	s := &shareConsumer{
		reader: reader{conn: c, topic: cfg.Topic}, group: cfg.Group, confirm: cfg.ConfirmSettle, room: inbox.NewRoom(cfg.Prefetch), batch: max(1, cfg.Prefetch/4),
		lots: map[int32]*lot{},
	}
	known, err := c.metadata(ctx, cfg.Topic)
	if err != nil {
		return nil, err
	}
	s.id, s.same = known.TopicID, time.Now()
	began.note(cfg.Group, cfg.Topic, s.id)
	if anchored {
		err = s.join(ctx, c, cfg)
	} else {
		err = s.begin(ctx, c, cfg)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.sharing[s] = struct{}{}
	c.mu.Unlock()
	return s, nil
}

// begin joins a group that begins with the topic when its members first fetch.
func (s *shareConsumer) begin(ctx context.Context, c *conn, cfg driver.ConsumerConfig) error {
	end, err := beginnings.wait(ctx, cfg.Group, cfg.Topic)
	if err != nil {
		return err
	}
	leaders, err := c.leaders(ctx, cfg.Topic)
	if err == nil {
		// The library asks one broker after the other, and a first answer may come before the broker has begun.
		s.answers.Store(int32(2 * leaders)) //gosec:disable G115 -- brokers are few
		err = s.join(ctx, c, cfg)
	}
	end(err == nil)
	return err
}

// join returns when this member is one, and has partitions.
func (s *shareConsumer) join(ctx context.Context, c *conn, cfg driver.ConsumerConfig) (err error) {
	joining, joined := context.WithCancel(ctx)
	defer joined()
	s.joined = joined
	s.client, err = c.newClient(append(fetchOptionsOf(cfg.Options),
		kgo.WithHooks(&lender{}, s),
		kgo.ConsumeTopics(cfg.Topic),
		kgo.ShareGroup(cfg.Group),
		kgo.ShareMaxRecords(int32(s.batch)), //gosec:disable G115 -- as many as fit into memory
		kgo.ShareMaxRecordsStrict(),         // nor is anything fetched that nobody waits for: its lock would already run
		kgo.ShareAckCallback(s.acknowledged),
	)...)
	if err != nil {
		return err
	}
	// The library fetches when it is polled, and can do so when the group has assigned partitions.
	s.records, err = s.poll(joining, s.batch, nil)
	s.room.Take(len(s.records))
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	if err == nil {
		err = s.trouble()
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

// OnGroupManageError is the library's hook for a member that cannot be one.
func (s *shareConsumer) OnGroupManageError(err error) {
	if kind := classify(err); kind != driver.Disconnected && kind != driver.Timeout {
		s.fail(err)
		s.joined()
	}
}

func (s *shareConsumer) fail(err error) {
	s.mu.Lock()
	s.failed = err
	s.mu.Unlock()
}

// trouble is what has failed since it was last asked for.
func (s *shareConsumer) trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.failed
	s.failed = nil
	return err
}

func (s *shareConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	if len(s.records) == 0 {
		if _, err := s.room.Reserve(ctx, s.batch, s.batch); err != nil { // a whole fetch must have room
			return 0, err
		}
		var err error
		s.records, err = s.await(ctx, min(len(b), s.batch), s.spare[:0])
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

// Settle acknowledges, releases or rejects each message by itself. Where confirmation was asked for it returns when the
// broker has answered. Otherwise acks travel with the next fetch, a second later at the latest; what is given back or
// refused is sent at once.
func (s *shareConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && o != driver.Requeue && o != driver.Reject {
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
		_ = s.FlushAcks(ended) // starts it and waits for nothing
	}
	return s.trouble()
}

// ended is a context that is over.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Close leaves the group; the broker gives what is not settled to other members. It fails where an acknowledgement did that nobody has
// waited for.
func (s *shareConsumer) Close(ctx context.Context) error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return nil
	}
	s.conn.mu.Lock()
	delete(s.conn.sharing, s)
	s.conn.mu.Unlock()
	s.room.Close()
	_ = s.FlushAcks(ctx)
	s.end(ctx)
	return s.trouble()
}
