package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// CreateTopic makes an empty stream. Only a group can make one, so a group is made and destroyed.
func (c streamConn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	const passing = "xk6-broker-create"
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

// PurgeTopic removes the entries, and what groups know of them.
func (c streamConn) PurgeTopic(ctx context.Context, topic string) error {
	info, err := c.client.XInfoStream(ctx, topic).Result()
	if err != nil {
		return err
	}
	groups, err := c.client.XInfoGroups(ctx, topic).Result()
	if err != nil {
		return err
	}
	if err := c.client.XTrimMinID(ctx, topic, after(info.LastGeneratedID)).Err(); err != nil {
		return err
	}
	for _, g := range groups {
		if err := c.forget(ctx, topic, g.Name, info.LastGeneratedID); err != nil {
			return err
		}
	}
	return nil
}

// after is the id that follows another.
func after(id string) string {
	var ms, seq uint64
	_, _ = fmt.Sscanf(id, "%d-%d", &ms, &seq)
	return fmt.Sprintf("%d-%d", ms, seq+1)
}

// forget has a group go on after an entry, with nothing pending before.
func (c streamConn) forget(ctx context.Context, topic, group, last string) error {
	for {
		found, err := c.client.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: topic, Group: group, Start: "-", End: last, Count: page,
		}).Result()
		if err != nil {
			return err
		}
		if len(found) == 0 {
			break
		}
		ids := make([]string, len(found))
		for i, p := range found {
			ids[i] = p.ID
		}
		if err := c.client.XAck(ctx, topic, group, ids...).Err(); err != nil {
			return err
		}
	}
	return c.client.XGroupSetID(ctx, topic, group, last).Err()
}

// Backlog is the group's lag, which was never delivered, and what is pending.
func (c streamConn) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	none := driver.Backlog{}
	if group == "" {
		return none, fmt.Errorf("the backlog of a stream without a group: %w", errors.ErrUnsupported)
	}
	groups, err := c.client.XInfoGroups(ctx, topic).Result()
	if err != nil {
		return none, err
	}
	for _, g := range groups {
		if g.Name != group {
			continue
		}
		if g.Lag < 0 || !c.server.atLeast(7, 0) { // the server does not know: before Redis 7, or where entries were deleted
			n, err := c.count(ctx, topic, g.LastDeliveredID)
			return driver.Backlog{Messages: g.Pending + n, Undelivered: n}, err
		}
		// The lag still counts what was trimmed before it was delivered.
		length, err := c.client.XLen(ctx, topic).Result()
		n := min(g.Lag, length)
		return driver.Backlog{Messages: g.Pending + n, Undelivered: n}, err
	}
	return none, replyError("NOGROUP no such group")
}

// count counts entries after one, by reading them.
func (c streamConn) count(ctx context.Context, topic, last string) (n int64, err error) {
	for {
		entries, err := c.client.XRangeN(ctx, topic, "("+strings.TrimPrefix(last, "("), "+", page).Result()
		if err != nil {
			return 0, err
		}
		n += int64(len(entries))
		if len(entries) < page {
			return n, nil
		}
		last = entries[len(entries)-1].ID
	}
}
