package amqp1

import (
	"context"
	"errors"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// management is what a broker does about topics, which AMQP has no words for.
type management interface {
	createTopic(ctx context.Context, spec driver.TopicSpec) error
	deleteTopic(ctx context.Context, topic string) error
	purgeTopic(ctx context.Context, topic string) error
	backlog(ctx context.Context, topic, group string) (messages int64, err error)
}

// subscriber is a [management] that makes subscriptions, at a broker where links cannot ask for them. Without a group it is one of the name unique, which
// goes with the connection.
type subscriber interface {
	subscribe(ctx context.Context, topic, group, unique string) (address string, err error)
}

// manage finds the management of the broker that the connection is to; nil where this driver does not speak it.
func (c *conn) manage() management {
	on, ok := c.link.Last()
	switch {
	case ok && on.artemis():
		return newArtemis(c)
	case ok && on.managed():
		return newRabbitMQ(c)
	}
	return nil
}

// unmanaged says that a verb needs a management.
func (c *conn) unmanaged(verb string) error {
	on, _ := c.link.Last()
	return fmt.Errorf("%s: %s has no management over AMQP 1.0 that this driver speaks: %w", verb, on, errors.ErrUnsupported)
}

// differs says that a topic that is there is not as it was asked for.
func differs(name, what string, is, asked any) error {
	return &kindError{driver.Rejected, fmt.Errorf("topic %q is there with other settings: %s is %v, and was asked to be %v", name, what, is, asked)}
}

// CreateTopic makes a topic. It does nothing at brokers whose management this driver does not speak.
func (c *conn) CreateTopic(ctx context.Context, spec driver.TopicSpec) error {
	if c.management == nil {
		return nil
	}
	return c.management.createTopic(ctx, spec)
}

// DeleteTopic deletes a topic and its subscriptions.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
	if c.management == nil {
		return c.unmanaged("delete")
	}
	return c.management.deleteTopic(ctx, topic)
}

// PurgeTopic empties a topic, of what is not with a consumer.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	if c.management == nil {
		return c.unmanaged("purge")
	}
	return c.management.purgeTopic(ctx, topic)
}

// Backlog is how many messages the queue has of a topic or a group.
func (c *conn) Backlog(ctx context.Context, topic, group string) (b driver.Backlog, err error) {
	switch {
	case c.management == nil:
		return b, c.unmanaged("backlog")
	case c.mode == queue && group != "":
		return b, fmt.Errorf("all consumers of a queue share it: group: %w", errors.ErrUnsupported)
	case c.mode == pubsub && group == "":
		return b, fmt.Errorf("a consumer without a group has a queue of its own: backlog: %w", errors.ErrUnsupported)
	}
	b.Messages, err = c.management.backlog(ctx, topic, group)
	return b, err
}
