package redis

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// CreateTopic makes an empty stream. Only a group can make one, so a group is made and destroyed.
func (c streamConn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	const passing = "xk6-broker-create" //gosec:disable G101 -- a group's name
	node, err := c.node(ctx, s.Name)
	if err != nil {
		return err
	}
	_, err = node.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.XGroupCreateMkStream(ctx, s.Name, passing, "$")
		p.XGroupDestroy(ctx, s.Name, passing)
		return nil
	})
	return err
}

// DeleteTopic deletes the stream with its groups.
func (c streamConn) DeleteTopic(ctx context.Context, topic string) error {
	n, err := c.client.Del(ctx, topic).Result()
	if err == nil && n == 0 {
		err = errNoTopic
	}
	return err
}

// PurgeTopic removes the entries and the groups' pending lists in one transaction. Otherwise a
// group could receive again entries that it read in between.
func (c streamConn) PurgeTopic(ctx context.Context, topic string) error {
	groups, err := c.client.XInfoGroups(ctx, topic).Result()
	if err != nil {
		return err
	}
	node, err := c.node(ctx, topic)
	if err != nil {
		return err
	}
	var info *redis.XInfoStreamCmd
	_, err = node.TxPipelined(ctx, func(p redis.Pipeliner) error {
		info = p.XInfoStream(ctx, topic)
		p.XTrimMaxLen(ctx, topic, 0)
		for _, g := range groups {
			p.XGroupSetID(ctx, topic, g.Name, "$")
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := c.forget(ctx, topic, g.Name, info.Val().LastGeneratedID); err != nil {
			return err
		}
	}
	return nil
}

// forget empties the pending list of a group up to an entry.
func (c streamConn) forget(ctx context.Context, topic, group, last string) error {
	for {
		found, err := c.client.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: topic, Group: group, Start: "-", End: last, Count: page,
		}).Result()
		if err != nil || len(found) == 0 {
			return err
		}
		ids := make([]string, len(found))
		for i, p := range found {
			ids[i] = p.ID
		}
		if err := c.client.XAck(ctx, topic, group, ids...).Err(); err != nil {
			return err
		}
	}
}
