package pulsar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// consumer receives from one subscription.
type consumer struct {
	pulsar.Consumer
	*permits
	conn         *conn
	cfg          driver.ConsumerConfig
	topic        topicName
	subscription string
	inbox        *inbox.Inbox[*delivery]

	settling sync.RWMutex // Close waits for Settle
	closed   bool
	stop     context.CancelFunc // ends giveBack
	running  sync.WaitGroup
}

func (c *conn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	t, err := c.topic(cfg.Topic)
	if err != nil {
		return nil, err
	}
	r := &consumer{
		conn: c, cfg: cfg, topic: t, subscription: cmp.Or(cfg.Group, uniqueName()),
		permits: newPermits(cfg.Prefetch),
	}
	r.inbox = inbox.New(r.hand)
	options := r.options()
	subscribe := func() (pulsar.Consumer, error) { return c.client.Subscribe(options) }
	if r.Consumer, err = await(ctx, c, subscribe, pulsar.Consumer.Close); err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.running.Go(func() { r.giveBack(life, options.MessageChannel) })
	return r, nil
}

func uniqueName() string {
	return fmt.Sprintf("xk6-broker-%016x", rand.Uint64()) //gosec:disable G404 -- a name, no secret
}

func (r *consumer) options() pulsar.ConsumerOptions {
	v := r.cfg.Options
	none := int64(0)
	o := pulsar.ConsumerOptions{
		Topic:                          r.topic.String(),
		SubscriptionName:               r.subscription,
		Name:                           uniqueName(),
		Type:                           subscriptionTypes[v.String("subscriptionType")],
		SubscriptionInitialPosition:    pulsar.SubscriptionPositionLatest,
		ReceiverQueueSize:              queueSize(r.cfg.Prefetch),
		MessageChannel:                 make(chan pulsar.ConsumerMessage),
		Interceptors:                   pulsar.ConsumerInterceptors{arrivals{r}},
		NackRedeliveryDelay:            max(v.Duration("nackDelay"), leastNackDelay),
		NackPrecisionBit:               &none,
		AckWithResponse:                r.cfg.ConfirmSettle,
		EnableBatchIndexAcknowledgment: true,
		AckGroupingOptions:             &pulsar.AckGroupingOptions{MaxSize: 1},
		BackOffPolicyFunc:              newBackoff,
		AutoDiscoveryPeriod:            discovery,
	}
	if r.cfg.Start == driver.StartEarliest {
		o.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	}
	if wait := v.Duration("ackDelay"); wait > 0 && !r.cfg.ConfirmSettle {
		o.AckGroupingOptions = &pulsar.AckGroupingOptions{MaxSize: 1000, MaxTime: wait}
	}
	return o
}

// leastNackDelay keeps the client from looking for requeued messages without a pause: it looks
// three times in this delay.
const leastNackDelay = 9 * time.Millisecond

// arrivals is an interceptor, which the client calls when it has read a message from the
// connection.
type arrivals struct{ r *consumer }

func (a arrivals) BeforeConsume(m pulsar.ConsumerMessage) {
	d := &delivery{Message: m.Message, received: driver.Now()}
	a.r.arrive(d)
	a.r.inbox.Put(d)
}

func (arrivals) OnAcknowledge(pulsar.Consumer, pulsar.MessageID)        {}
func (arrivals) OnNegativeAcksSend(pulsar.Consumer, []pulsar.MessageID) {}

// Receive implements [driver.Consumer].
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return r.inbox.Receive(ctx, b)
}

// hand converts messages.
func (r *consumer) hand(b driver.Batch, deliveries []*delivery) {
	for i, d := range deliveries {
		b[i] = driver.Message{
			Body: d.Payload(), Headers: headers(d.Message.Properties()), Topic: r.cfg.Topic, Received: d.received,
			Partition: max(0, d.ID().PartitionIdx()), Token: d,
		}
		if ms := d.EventTime().UnixMilli(); ms > 0 {
			b[i].Properties = driver.Values{"eventTime": ms}
		}
		if key := d.Key(); key != "" {
			b[i].Key = []byte(key)
		}
	}
}

// Settle acknowledges messages, or gives them back. A rejected one is acknowledged: Pulsar has no
// rejection.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && r.conn.mode == failover {
		return fmt.Errorf("%v: %w", o, errors.ErrUnsupported)
	}
	r.settling.RLock()
	defer r.settling.RUnlock()
	if r.closed {
		return driver.ErrClosed
	}
	ids, err := r.settle(b)
	if len(ids) == 0 {
		return err
	}
	if o == driver.Requeue {
		for _, id := range ids {
			r.NackID(id)
		}
		return err
	}
	return errors.Join(err, r.conn.done(ctx, func() error { return r.AckIDList(ids) }))
}

// Close gives back the unsettled messages, and deletes the subscription of a consumer without a
// group.
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
	err := r.conn.done(ctx, func() error { r.Consumer.Close(); return nil })
	if r.cfg.Group == "" && err == nil {
		err = r.conn.unsubscribe(ctx, r.topic, r.subscription)
	}
	return err
}
