package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// offsets are the places in all partitions of a topic where a consumer begins.
func (c *conn) offsets(ctx context.Context, topic string, start driver.Start) (kadm.Offsets, error) {
	list := c.admin.ListEndOffsets
	if start == driver.StartEarliest {
		list = c.admin.ListStartOffsets
	}
	listed, err := list(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of topic %s: %w", topic, err)
	}
	return listed.Offsets(), nil
}

// uncommitted are those of the offsets in whose partitions the group has committed nothing.
func (c *conn) uncommitted(ctx context.Context, group string, all kadm.Offsets) (kadm.Offsets, error) {
	committed, err := c.committed(ctx, group, all.TopicsSet().Topics()...)
	if err != nil {
		return nil, err
	}
	missing := kadm.Offsets{}
	all.Each(func(o kadm.Offset) {
		if at, ok := committed.Lookup(o.Topic, o.Partition); !ok || at.At < 0 {
			o.LeaderEpoch = -1
			missing.Add(o)
		}
	})
	return missing, nil
}

func (c *conn) committed(ctx context.Context, group string, topics ...string) (committed kadm.OffsetResponses, err error) {
	err = c.patiently(ctx, func() (err error) {
		if committed, err = c.admin.FetchOffsetsForTopics(ctx, group, topics...); err != nil {
			return err
		}
		return committed.Error()
	})
	if err != nil {
		return nil, fmt.Errorf("offsets of group %s: %w", group, err)
	}
	return committed, nil
}

func (c *conn) groupBacklog(ctx context.Context, topic, group string) (backlog driver.Backlog, err error) {
	if group == "" {
		return backlog, fmt.Errorf("backlog without a group: %w", errors.ErrUnsupported)
	}
	if err := c.flush(ctx, topic, group); err != nil {
		return backlog, err
	}
	ahead, err := c.uncommittedSpans(ctx, topic, group)
	for partition, s := range ahead {
		backlog.Messages += max(0, s.end-s.from)
		backlog.Dropped += reached.below(reachKey{c.hosts, topic, group}, partition, s.committed, s.from)
	}
	return backlog, err
}

// span is a part of a partition, from an offset on and before another.
type span struct{ from, end int64 }

// uncommitted is the span that a group has not committed and the broker has. The broker has dropped what lies between committed and from.
type uncommitted struct {
	span
	committed int64
}

// uncommittedSpans are what a group has not committed of each partition of a topic.
func (c *conn) uncommittedSpans(ctx context.Context, topic, group string) (map[int32]uncommitted, error) {
	starts, err := c.offsets(ctx, topic, driver.StartEarliest)
	if err != nil {
		return nil, err
	}
	ends, err := c.offsets(ctx, topic, driver.StartNew)
	if err != nil {
		return nil, err
	}
	committed, err := c.committed(ctx, group, topic)
	if err != nil {
		return nil, err
	}
	spans := map[int32]uncommitted{}
	ends.Each(func(end kadm.Offset) {
		start, _ := starts.Lookup(topic, end.Partition)
		done := int64(0)
		if at, ok := committed.Lookup(topic, end.Partition); ok {
			done = max(0, at.At)
		}
		spans[end.Partition] = uncommitted{span{max(start.At, done), end.At}, done}
	})
	return spans, nil
}

// flush commits what this connection's own members have settled and not yet committed.
func (c *conn) flush(ctx context.Context, topic, group string) error {
	c.mu.Lock()
	var members []*groupConsumer
	for g := range c.members {
		if g.topic == topic && g.group == group {
			members = append(members, g)
		}
	}
	c.mu.Unlock()
	for _, g := range members {
		g.mu.Lock()
		g.reach()
		g.mu.Unlock()
		if err := g.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
