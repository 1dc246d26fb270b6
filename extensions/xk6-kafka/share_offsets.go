package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// defaultGroup is the one share group of a topic whose consumers name none: the topic's only, shared flow.
func defaultGroup(topic string) string { return "xk6-broker-" + topic }

// anchorShare sets where a share group begins, in the partitions where it has not begun. Left to itself it would begin
// where its group config says, at the moment of its first fetch, and lose what was sent until then.
func (c *conn) anchorShare(ctx context.Context, topic, group string, start driver.Start) error {
	begin, err := c.offsets(ctx, topic, start)
	if err != nil {
		return err
	}
	missing := func() (kadm.Offsets, error) {
		begun, err := c.shareOffsets(ctx, topic, group)
		if err != nil {
			return nil, err
		}
		missing := kadm.Offsets{}
		begin.Each(func(o kadm.Offset) {
			if at, ok := begun[o.Partition]; !ok || at.StartOffset < 0 {
				missing.Add(o)
			}
		})
		return missing, nil
	}
	at, err := missing()
	if err != nil || len(at) == 0 {
		return err
	}
	failed := c.patiently(ctx, func() error {
		altered, err := c.admin.AlterShareGroupOffsets(ctx, group, at)
		for _, partition := range altered[topic] {
			err = cmp.Or(err, partition)
		}
		return err
	})
	if failed == nil {
		return nil
	}
	// Only while a group has no members can it be set. If one of them got there first, all is well.
	if at, err = missing(); err == nil && len(at) > 0 {
		err = fmt.Errorf("share group %s has members that have not begun with topic %s: %w", group, topic, failed)
	}
	return err
}

// shareBacklog is the broker's own count, where it keeps one, else how far the group's start is behind the end.
func (c *conn) shareBacklog(ctx context.Context, topic, group string) (int64, error) {
	if group == "" {
		group = defaultGroup(topic)
	}
	from, err := c.shareOffsets(ctx, topic, group)
	if err != nil {
		return 0, err
	}
	ends, err := c.offsets(ctx, topic, driver.StartNew)
	if err != nil {
		return 0, err
	}
	starts, err := c.offsets(ctx, topic, driver.StartEarliest)
	if err != nil {
		return 0, err
	}
	var backlog int64
	ends.Each(func(end kadm.Offset) {
		at, ok := from[end.Partition]
		start, _ := starts.Lookup(topic, end.Partition)
		switch {
		case ok && at.StartOffset >= 0 && at.Lag >= 0:
			backlog += at.Lag
		default:
			backlog += max(0, end.At-max(start.At, at.StartOffset))
		}
	})
	return backlog, nil
}

// shareOffsets are where a share group is, in the partitions where it is anywhere.
func (c *conn) shareOffsets(ctx context.Context, topic, group string) (at map[int32]kadm.ShareOffset, err error) {
	err = c.patiently(ctx, func() error {
		described, err := c.admin.DescribeShareGroupOffsets(ctx, group)
		d := described[group]
		if errors.Is(d.Err, kerr.GroupIDNotFound) {
			return nil // nobody has made it: it is nowhere
		}
		at = d.Offsets[topic]
		return cmp.Or(err, d.Err)
	})
	return at, err
}
