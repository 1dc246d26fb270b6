package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func lists() driver.Driver {
	return driver.Driver{
		Name:    "redis-list",
		Schemes: []string{"redis-list"},
		Doc:     "Redis lists as a reliable queue: RPUSH, and BLMOVE to a list of the consumer's own until the message is settled.",
		Features: driver.Features{
			Order: driver.PerTopic, Confirm: driver.Replicated, Deliver: driver.AtLeastOnce,
			Settle: driver.Ack | driver.Requeue | driver.Reject, Start: driver.StartEarliest, SettleConfirmed: driver.Always,
			Async: true, MaxMessageBytes: maxBulk,
		},
		Options: append(append(connectOptions(), confirmOptions()...), driver.Option{
			Name: "lease", Scope: driver.OnConsumer, Type: driver.Duration, Default: "10s", Min: int64(10 * time.Millisecond),
			Doc: "How long after a consumer's last sign of life the others take its messages; each gives one, and looks, every third of it.",
		}),
		Open:     openLists,
		Classify: classify,
	}
}

// listConn is a connection whose topics are lists.
type listConn struct{ *conn }

func openLists(ctx context.Context, t driver.Target) (driver.Conn, error) {
	c, err := open(ctx, t)
	if err != nil {
		return nil, err
	}
	return listConn{c}, nil
}

// listKeys are the keys of a topic. All are on the server that has the list.
type listKeys struct {
	list       string
	members    string // a set of the consumers' names, and of "" where the topic was created
	processing string // followed by a name: a list of what is with a consumer
	alive      string // followed by a name: expires when the consumer has been silent
}

func keysOf(topic string) listKeys {
	tag := topic
	if _, rest, ok := strings.Cut(topic, "{"); !ok || strings.Index(rest, "}") < 1 {
		tag = "{" + topic + "}"
	}
	return listKeys{list: topic, members: tag + ":consumers", processing: tag + ":processing:", alive: tag + ":alive:"}
}

// NewProducer returns a producer that appends to a list.
func (c listConn) NewProducer(ctx context.Context, p driver.ProducerConfig) (driver.Producer, error) {
	if !p.Options.Bool("create") {
		if err := c.exists(ctx, p.Topic); err != nil {
			return nil, err
		}
	}
	fixed := appendBulk(appendBulk(appendArray(nil, 3), "RPUSH"), p.Topic)
	return c.newProducer(ctx, p, &producer{
		command: func(b []byte, m *driver.Message) []byte { return appendBulk(append(b, fixed...), m.Body) },
		answer: func(r reader, _ *driver.Place) error {
			_, err := r.integer()
			return err
		},
	})
}

// CreateTopic marks the topic as created, because an empty list does not exist in Redis.
func (c listConn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	return c.client.SAdd(ctx, keysOf(s.Name).members, "").Err()
}

// names are the consumers that have messages or may have some.
func (c listConn) names(ctx context.Context, keys listKeys) ([]string, error) {
	all, err := c.client.SMembers(ctx, keys.members).Result()
	if err != nil {
		return nil, err
	}
	names := all[:0]
	for _, name := range all {
		if name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// DeleteTopic deletes the list and the consumers' lists.
func (c listConn) DeleteTopic(ctx context.Context, topic string) error {
	keys := keysOf(topic)
	names, err := c.names(ctx, keys)
	if err != nil {
		return err
	}
	all := []string{keys.list, keys.members}
	for _, name := range names {
		all = append(all, keys.processing+name, keys.alive+name)
	}
	n, err := c.client.Del(ctx, all...).Result()
	if err == nil && n == 0 {
		err = errNoTopic
	}
	return err
}

// PurgeTopic removes the messages that no consumer has.
func (c listConn) PurgeTopic(ctx context.Context, topic string) error {
	if err := c.exists(ctx, topic); err != nil {
		return err
	}
	return c.client.Del(ctx, topic).Err()
}

// exists reports whether the list has messages or was created.
func (c listConn) exists(ctx context.Context, topic string) error {
	keys := keysOf(topic)
	n, err := c.client.Exists(ctx, keys.list, keys.members).Result()
	if err == nil && n == 0 {
		err = errNoTopic
	}
	return err
}

// Backlog counts the list and the consumers' lists.
func (c listConn) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	if group != "" {
		return driver.Backlog{}, fmt.Errorf("groups: %w", errors.ErrUnsupported)
	}
	if err := c.exists(ctx, topic); err != nil {
		return driver.Backlog{}, err
	}
	keys := keysOf(topic)
	names, err := c.names(ctx, keys)
	if err != nil {
		return driver.Backlog{}, err
	}
	// In one transaction, so that a message on its way from one list to another is counted once.
	node, err := c.node(ctx, topic)
	if err != nil {
		return driver.Backlog{}, err
	}
	lengths, err := node.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LLen(ctx, keys.list)
		for _, name := range names {
			p.LLen(ctx, keys.processing+name)
		}
		return nil
	})
	if err != nil {
		return driver.Backlog{}, err
	}
	var n int64
	for _, l := range lengths {
		if length, ok := l.(*redis.IntCmd); ok {
			n += length.Val()
		}
	}
	return driver.Backlog{Messages: n}, nil
}
