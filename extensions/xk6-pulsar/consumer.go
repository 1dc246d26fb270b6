package pulsar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// consumer receives from one subscription.
type consumer struct {
	conn         *conn
	cfg          driver.ConsumerConfig
	topic        topicName
	subscription string
	inbox        *inbox.Inbox[*delivery]
	letters      *deadLetters
	cumulative   bool // an ack is of all before it, too

	current  atomic.Pointer[receiver]
	settling sync.RWMutex // Close waits for Settle
	closed   bool
	life     context.Context // ends with Close
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// receiver is one consumer of the client's. The client gives it up where its topic is deleted.
type receiver struct {
	pulsar.Consumer
	*permits
	name string
	end  context.CancelFunc // of giving permits back
}

func (c *conn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	t, err := c.topic(cfg.Topic)
	if err != nil {
		return nil, err
	}
	r := &consumer{conn: c, cfg: cfg, topic: t, subscription: cfg.Group, letters: c.newDeadLetters(cfg.Options.String("deadLetterTopic"))}
	if cfg.Group == "" {
		r.subscription = fmt.Sprintf("xk6-broker-%016x", rand.Uint64()) //gosec:disable G404 -- a name, no secret
	}
	if r.cumulative = cfg.Options.String("ackType") == cumulative; r.cumulative {
		c.cumulative.Store(true)
	}
	r.inbox = inbox.New(r.hand)
	r.life, r.stop = context.WithCancel(context.Background())
	s, err := r.open(ctx, cfg.Start)
	if err != nil {
		r.stop()
		return nil, err
	}
	r.current.Store(s)
	return r, nil
}

// open subscribes.
func (r *consumer) open(ctx context.Context, start driver.Start) (*receiver, error) {
	s := &receiver{permits: newPermits(r.cfg.Prefetch), name: fmt.Sprintf("xk6-broker-%016x", rand.Uint64())} //gosec:disable G404 -- a name, no secret
	options := r.options(s, start)
	r.conn.journal.lost.Store(s.name, sync.OnceFunc(func() { r.lost(s) }))
	var err error
	if s.Consumer, err = await(ctx, r.conn, func() (pulsar.Consumer, error) { return r.conn.client.Subscribe(options) }, pulsar.Consumer.Close); err != nil {
		r.conn.journal.lost.Delete(s.name)
		return nil, err
	}
	var life context.Context
	life, s.end = context.WithCancel(r.life)
	r.running.Go(func() { s.giveBack(life, options.MessageChannel) })
	return s, nil
}

// lost goes on with the topic that has the name next: all that it holds came after this consumer.
func (r *consumer) lost(s *receiver) {
	r.settling.RLock()
	defer r.settling.RUnlock()
	if r.closed {
		return
	}
	r.running.Go(func() {
		if r.close(r.life, s) != nil {
			return
		}
		opened, ok := redial.Until(r.life, func(ctx context.Context) (*receiver, error) { return r.open(ctx, driver.StartEarliest) }, r.inbox.Fail)
		if ok {
			r.current.Store(opened)
		}
	})
}

func (r *consumer) close(ctx context.Context, s *receiver) error {
	r.conn.journal.lost.Delete(s.name)
	s.end()
	return r.conn.done(ctx, func() error { s.Close(); return nil })
}

func (r *consumer) options(s *receiver, start driver.Start) pulsar.ConsumerOptions {
	v := r.cfg.Options
	none := int64(0)
	o := pulsar.ConsumerOptions{
		Topic:                          r.topic.String(),
		SubscriptionName:               r.subscription,
		Name:                           s.name,
		Type:                           subscriptionTypes[v.String("subscriptionType")],
		SubscriptionInitialPosition:    pulsar.SubscriptionPositionLatest,
		ReceiverQueueSize:              queueOf(r.cfg.Prefetch),
		MessageChannel:                 make(chan pulsar.ConsumerMessage),
		Interceptors:                   pulsar.ConsumerInterceptors{arrivals{r, s}},
		NackRedeliveryDelay:            max(v.Duration("nackDelay"), leastNackDelay),
		NackPrecisionBit:               &none,
		AckWithResponse:                r.cfg.ConfirmSettle,
		EnableBatchIndexAcknowledgment: true,
		AckGroupingOptions:             &pulsar.AckGroupingOptions{MaxSize: 1},
		BackOffPolicyFunc:              newBackoff,
		AutoDiscoveryPeriod:            discovery,
	}
	if start == driver.StartEarliest {
		o.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	}
	if wait := v.Duration("ackDelay"); wait > 0 && !r.cfg.ConfirmSettle {
		o.AckGroupingOptions = &pulsar.AckGroupingOptions{MaxSize: 1000, MaxTime: wait}
	}
	return o
}

// leastNackDelay is what the client looks for messages to be given back three times of, all the time.
const leastNackDelay = 9 * time.Millisecond

// arrivals is the first line of this driver that sees a message: an interceptor, which the client calls when it has read it from the connection.
type arrivals struct {
	r *consumer
	s *receiver
}

func (a arrivals) BeforeConsume(m pulsar.ConsumerMessage) {
	d := &delivery{Message: m.Message, received: driver.Now(), from: a.s}
	a.s.arrive(d)
	a.r.inbox.Put(d)
}

func (arrivals) OnAcknowledge(pulsar.Consumer, pulsar.MessageID)        {}
func (arrivals) OnNegativeAcksSend(pulsar.Consumer, []pulsar.MessageID) {}

// Receive implements [driver.Consumer].
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return r.inbox.Receive(ctx, b)
}

// hand gives messages the driver's form.
func (r *consumer) hand(b driver.Batch, came []*delivery) {
	for i, d := range came {
		b[i] = driver.Message{
			Body: d.Payload(), Headers: headers(d.Message.Properties()), Properties: propertiesOf(d),
			Topic: r.cfg.Topic, Received: d.received, Partition: max(0, d.ID().PartitionIdx()), Token: d,
		}
		if key := d.Key(); key != "" {
			b[i].Key = []byte(key)
		}
	}
}

// Settle implements [driver.Consumer].
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && r.conn.mode == failover {
		return fmt.Errorf("%v: %w", o, errors.ErrUnsupported)
	}
	r.settling.RLock()
	defer r.settling.RUnlock()
	if r.closed {
		return driver.ErrClosed
	}
	if o == driver.Reject {
		if err := r.letters.send(ctx, b); err != nil {
			return err
		}
	}
	s := r.current.Load()
	if r.cumulative {
		ids, err := s.settleThrough(b, s)
		return errors.Join(err, r.conn.done(ctx, func() error { return s.ackThrough(ids) }))
	}
	ids, err := s.settle(b, s)
	if len(ids) == 0 {
		return err
	}
	if o == driver.Requeue {
		for _, id := range ids {
			s.NackID(id)
		}
		return err
	}
	return errors.Join(err, r.conn.done(ctx, func() error { return s.AckIDList(ids) }))
}

// Close gives back what is not settled. The subscription of a consumer without a group goes with it.
func (r *consumer) Close(ctx context.Context) error {
	first := r.inbox.Close()
	r.settling.Lock()
	r.closed = true
	r.settling.Unlock()
	if !first {
		return nil
	}
	r.stop()
	r.running.Wait()
	err := r.close(ctx, r.current.Load())
	if r.cfg.Group == "" && err == nil {
		err = r.conn.unsubscribe(ctx, r.topic, r.subscription)
	}
	return errors.Join(err, r.letters.close(ctx))
}

// As lends the pulsar.Consumer.
func (r *consumer) As(target any) bool { return driver.As(target, r.current.Load().Consumer) }
