package amqp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// CreateTopic fails as rejected if the topic exists with other properties.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	names := append([]string{s.Name, s.Options.String("exchange")}, bindingKeys(&s)...)
	if err := cmp.Or(c.refuseBindings(s.Options), short(names...)); err != nil {
		return err
	}
	return c.consuming.do(ctx, func(ch *amqp.Channel) error { return c.declare(ch, s) })
}

// DeleteTopic deletes the queue, or the exchange with the queues of the groups that this connection
// has seen. An absent topic is looked for first, because its deletion is no error to the broker.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
	if err := short(topic); err != nil {
		return err
	}
	return c.consuming.do(ctx, func(ch *amqp.Channel) error {
		if c.mode != pubsub {
			if _, err := ch.QueueDeclarePassive(topic, false, false, false, false, nil); err != nil {
				return err
			}
			_, err := ch.QueueDelete(topic, false, false, false)
			return err
		}
		if err := ch.ExchangeDeclarePassive(topic, "", false, false, false, false, nil); err != nil {
			return err
		}
		for _, name := range c.forget(topic) {
			if _, err := ch.QueueDelete(name, false, false, false); err != nil {
				return err
			}
		}
		return ch.ExchangeDelete(topic, false, false)
	})
}

// PurgeTopic removes the ready messages. Consumers keep theirs.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	if c.mode == stream {
		return fmt.Errorf("a stream cannot be purged: %w", errors.ErrUnsupported)
	}
	if err := short(topic); err != nil {
		return err
	}
	return c.consuming.do(ctx, func(ch *amqp.Channel) error {
		names := []string{topic}
		if c.mode == pubsub {
			if err := ch.ExchangeDeclarePassive(topic, "", false, false, false, false, nil); err != nil {
				return err
			}
			names = c.seen(topic)
		}
		for _, name := range names {
			if _, err := ch.QueuePurge(name, false); err != nil {
				return err
			}
		}
		return nil
	})
}

// remember stores the queue of a group of a pubsub topic, because the protocol cannot list them.
func (c *conn) remember(topic, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups[topic] == nil {
		c.groups[topic] = map[string]struct{}{}
	}
	c.groups[topic][name] = struct{}{}
}

func (c *conn) seen(topic string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.groups[topic]))
}

func (c *conn) forget(topic string) []string {
	names := c.seen(topic)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, topic)
	return names
}
