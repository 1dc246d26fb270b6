package pulsar

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// deadLetters sends rejected messages to a topic of their own, because Pulsar has no rejection.
type deadLetters struct {
	conn  *conn
	topic string // or ""

	mu       sync.Mutex
	producer pulsar.Producer // nil before the first message
}

func (c *conn) newDeadLetters(topic string) *deadLetters { return &deadLetters{conn: c, topic: topic} }

// send returns when the broker has the messages.
func (l *deadLetters) send(ctx context.Context, b driver.Batch) error {
	if l.topic == "" {
		return nil
	}
	p, err := l.open(ctx)
	if err != nil {
		return err
	}
	failed := make(chan error, len(b))
	for _, m := range b {
		d, ok := m.Token.(*delivery)
		if !ok {
			return errSettled
		}
		letter := pulsar.ProducerMessage{Payload: d.Payload(), Key: d.Key(), EventTime: d.EventTime()}
		// The clients' own dead letters have these properties.
		letter.Properties = map[string]string{"REAL_TOPIC": d.Topic(), "ORIGIN_MESSAGE_ID": d.ID().String()}
		maps.Copy(letter.Properties, d.Message.Properties())
		p.SendAsync(ctx, &letter, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { failed <- err })
	}
	var all error
	for range b {
		select {
		case err := <-failed:
			all = errors.Join(all, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return all
}

func (l *deadLetters) open(ctx context.Context) (pulsar.Producer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.producer != nil {
		return l.producer, nil
	}
	t, err := l.conn.topic(l.topic)
	if err != nil {
		return nil, &driver.OptionError{Name: "deadLetterTopic", Err: err}
	}
	options := pulsar.ProducerOptions{Topic: t.String(), DisableBatching: true, BackOffPolicyFunc: newBackoff}
	create := func() (pulsar.Producer, error) { return l.conn.client.CreateProducer(options) }
	l.producer, err = await(ctx, l.conn, create, pulsar.Producer.Close)
	return l.producer, err
}

func (l *deadLetters) close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.producer == nil {
		return nil
	}
	return l.conn.done(ctx, func() error { l.producer.Close(); return nil })
}
