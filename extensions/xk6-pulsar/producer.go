package pulsar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer sends to one topic. The client closes its own producer for good if the topic is deleted
// and forgets messages then, so the producer holds the messages on their way.
type producer struct {
	pulsar.Producer
	conn       *conn
	topic      string
	router     *router
	partition  int32 // to send to, or -1
	partitions int32

	mu     sync.Mutex
	sent   map[*outgoing]struct{} // without an answer
	reason error                  // fails all further messages
	empty  chan struct{}
	closed bool
}

// outgoing is a message on its way.
type outgoing struct {
	pulsar.ProducerMessage
	p     *producer
	i     int
	done  driver.Done
	place *driver.Place
}

// NewProducer returns a producer that is connected to the brokers of all partitions.
func (c *conn) NewProducer(ctx context.Context, cfg driver.ProducerConfig) (driver.Producer, error) {
	t, err := c.topic(cfg.Topic)
	if err != nil {
		return nil, err
	}
	p := &producer{
		conn: c, topic: t.String(), router: newRouter(cfg.Options), sent: map[*outgoing]struct{}{},
		partition: int32(min(cfg.Options.Int("partition"), 1<<30)), //gosec:disable G115 -- -1 at least
	}
	options := producerOptions(t, cfg, p.router)
	create := func() (pulsar.Producer, error) { return c.client.CreateProducer(options) }
	if p.Producer, err = await(ctx, c, create, pulsar.Producer.Close); err != nil {
		return nil, err
	}
	list := func() ([]string, error) { return c.client.TopicPartitions(p.topic) }
	partitions, err := await(ctx, c, list, nil)
	p.partitions = int32(len(partitions)) //gosec:disable G115 -- a count, far below the limit
	if err == nil {
		err = p.checkPartition(p.partition)
	}
	if err != nil {
		_ = p.end(ctx)
		return nil, err
	}
	return p, nil
}

func (p *producer) checkPartition(partition int32) error {
	if partition < p.partitions {
		return nil
	}
	err := fmt.Errorf("%d: topic %s has partitions 0 to %d", partition, p.topic, p.partitions-1)
	return &driver.OptionError{Name: "partition", Err: err}
}

// Send implements [driver.Producer].
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	for i := range b {
		p.send(&b[i], i, done)
	}
}

func (p *producer) send(m *driver.Message, i int, done driver.Done) {
	partition := p.partition
	if chosen, ok := m.Properties["partition"].(int64); ok {
		partition = int32(min(chosen, 1<<30)) //gosec:disable G115 -- -1 at least
	}
	if err := p.checkPartition(partition); err != nil {
		done(i, err)
		return
	}
	o := &outgoing{p: p, i: i, done: done, place: m.Place}
	o.ProducerMessage = pulsar.ProducerMessage{Payload: m.Body, Key: string(m.Key), Properties: properties(m)}
	if after, ok := m.Properties["deliverAfter"].(time.Duration); ok {
		o.DeliverAfter = after
	}
	if ms, ok := m.Properties["eventTime"].(int64); ok && ms > 0 {
		o.EventTime = time.UnixMilli(ms)
	}
	if err := p.add(o); err != nil {
		done(i, err)
		return
	}
	p.hand(o, partition)
}

// hand gives a message to the client. The client panics if it closes its producer meanwhile.
func (p *producer) hand(o *outgoing, partition int32) {
	defer func() {
		if recover() != nil {
			p.die(errGone)
		}
	}()
	p.router.choose(partition, func() { p.SendAsync(context.Background(), &o.ProducerMessage, o.answered) })
}

// add holds a message. It fails if nothing can be sent any more.
func (p *producer) add(o *outgoing) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason != nil {
		return p.reason
	}
	p.sent[o] = struct{}{}
	return nil
}

// take returns false if the message is done already.
func (p *producer) take(o *outgoing) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.sent[o]; !ok {
		return false
	}
	delete(p.sent, o)
	if len(p.sent) == 0 && p.empty != nil {
		close(p.empty)
		p.empty = nil
	}
	return true
}

// answered is the client's callback.
func (o *outgoing) answered(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
	p := o.p
	if !p.take(o) {
		return
	}
	if err == nil && o.place != nil {
		*o.place = placeOf(id)
	}
	err = p.conn.journal.explain(err)
	o.done(o.i, err)
	if isFinal(err) {
		p.die(err)
	}
}

// isFinal reports whether the client's producer ends with an error.
func isFinal(err error) bool {
	return errors.Is(err, pulsar.ErrProducerClosed) || errors.Is(err, pulsar.ErrTopicNotfound) ||
		errors.Is(err, pulsar.ErrTopicTerminated) || errors.Is(err, pulsar.ErrProducerFenced)
}

// die fails the messages on their way and all further ones.
func (p *producer) die(reason error) {
	p.mu.Lock()
	p.reason = cmp.Or(p.reason, reason)
	p.mu.Unlock()
	p.abandon(reason)
}

// abandon fails the messages on their way.
func (p *producer) abandon(reason error) {
	p.mu.Lock()
	all := slices.Collect(maps.Keys(p.sent))
	p.mu.Unlock()
	for _, o := range all {
		if p.take(o) {
			o.done(o.i, reason)
		}
	}
}

// Close waits for the messages on their way. The rest fails when ctx ends.
func (p *producer) Close(ctx context.Context) error {
	p.mu.Lock()
	already := p.closed
	p.closed = true
	p.reason = cmp.Or(p.reason, driver.ErrClosed)
	p.mu.Unlock()
	if already {
		return nil
	}
	err := p.drain(ctx)
	if err != nil {
		p.abandon(err)
	}
	err = cmp.Or(err, p.end(ctx))
	p.abandon(driver.ErrClosed)
	return err
}

// drain waits until no message is on its way. A waiting batch is sent at once.
func (p *producer) drain(ctx context.Context) error {
	p.mu.Lock()
	if len(p.sent) == 0 {
		p.mu.Unlock()
		return nil
	}
	empty := make(chan struct{})
	p.empty = empty
	p.mu.Unlock()
	p.conn.running.Go(func() { _ = p.FlushWithCtx(ctx) })
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *producer) end(ctx context.Context) error {
	return p.conn.done(ctx, func() error { p.Producer.Close(); return nil })
}
