package pulsar

import (
	"context"
	"errors"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// deadLetters sends rejected messages to a topic of their own. Pulsar has no rejection: its clients do that.
type deadLetters struct {
	conn  *conn
	topic string // "" where there is none

	mu       sync.Mutex
	producer pulsar.Producer // made for the first
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
		letter := pulsar.ProducerMessage{Payload: d.Payload(), Key: d.Key(), EventTime: d.EventTime(), Properties: map[string]string{
			"REAL_TOPIC": d.Topic(), "ORIGIN_MESSAGE_ID": d.ID().String(), // as the clients' own dead letters have it
		}}
		for name, value := range d.Message.Properties() {
			letter.Properties[name] = value
		}
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
	l.producer, err = await(ctx, l.conn, func() (pulsar.Producer, error) {
		return l.conn.client.CreateProducer(pulsar.ProducerOptions{Topic: t.String(), DisableBatching: true, BackOffPolicyFunc: newBackoff})
	}, pulsar.Producer.Close)
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
