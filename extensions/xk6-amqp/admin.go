package amqp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// CreateTopic fails as rejected where the topic exists with other properties: a test of it would measure something else
// than it says.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	return c.consuming.do(ctx, func(ch *amqp.Channel) error { return c.declare(ch, s) })
}

// DeleteTopic deletes the queue, or the exchange with the queues of those groups that this connection has seen. The
// broker itself would not mind an absent one.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
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

// PurgeTopic removes what waits to be delivered; what consumers hold already stays with them.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	if c.mode == stream {
		return fmt.Errorf("a stream cannot be purged: %w", errors.ErrUnsupported)
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

// Backlog is what waits in the queue, which the broker tells, and what was delivered to this connection's consumers and
// is not settled. What other processes hold unsettled the protocol does not tell, nor what of the queue was given back.
func (c queueConn) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	var held int64
	names := map[string]bool{}
	if c.mode == queue {
		names[topic] = true
	} else if group != "" {
		names[groupQueue(topic, group)] = true
	}
	for _, r := range c.members(topic, group) {
		if name, n := r.unsettled(); name != "" {
			names[name] = true
			held += n
		}
	}
	var waiting int64
	err := c.consuming.do(ctx, func(ch *amqp.Channel) error {
		for name := range names {
			q, err := ch.QueueDeclarePassive(name, false, false, false, false, nil)
			if err != nil {
				return err
			}
			waiting += int64(q.Messages)
		}
		return nil
	})
	return driver.Backlog{Messages: waiting + held}, err
}

// join notes a consumer. Two groups on one queue would take each other's messages, where each expects all of them.
func (c *conn) join(r *consumer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.consumers {
		if c.mode == queue && other.topic == r.topic && other.group != r.group && other.group != "" && r.group != "" {
			return fmt.Errorf("a queue has one group, here %q: group %q: %w (rabbitmq-pubsub has several)", other.group, r.group, errors.ErrUnsupported)
		}
	}
	c.consumers[r] = struct{}{}
	return nil
}

func (c *conn) leave(r *consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.consumers, r)
}

// members are this connection's consumers of one flow of messages.
func (c *conn) members(topic, group string) []*consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var members []*consumer
	for r := range c.consumers {
		if r.topic == topic && (c.mode == queue || r.group == group) {
			members = append(members, r)
		}
	}
	return members
}

// unsettled tells from which queue a consumer consumes, and how many messages it holds.
func (r *consumer) unsettled() (string, int64) {
	r.mu.Lock()
	in := r.intake
	r.mu.Unlock()
	if in == nil || in.IsClosed() {
		return "", 0 // not open yet, or lost: the broker has everything
	}
	r.settling.Lock()
	defer r.settling.Unlock()
	return in.queue, int64(in.arrived.Load() - in.ledger.count) // never more than the prefetch
}

// remember notes the queue of a group of a pubsub topic, since the protocol cannot list them.
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
