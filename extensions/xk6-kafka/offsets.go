package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// offsets returns the offsets in all partitions of a topic where a consumer begins.
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

// uncommitted returns the offsets of partitions without a commit of the group.
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

func (c *conn) committed(
	ctx context.Context, group string, topics ...string,
) (committed kadm.OffsetResponses, err error) {
	err = c.retry(ctx, func() (err error) {
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
	if err := c.consumers.flush(ctx, topic, group); err != nil {
		return backlog, err
	}
	spans, dropped, err := c.uncommittedSpans(ctx, topic, group)
	for _, s := range spans {
		backlog.Messages += max(0, s.end-s.from)
	}
	backlog.Estimate = dropped
	return backlog, err
}

// span is a part of a partition, from an offset on and before another.
type span struct{ from, end int64 }

// uncommittedSpans returns the part of each partition that the group has not committed and the
// broker stores. dropped reports whether the broker has dropped uncommitted messages.
func (c *conn) uncommittedSpans(
	ctx context.Context, topic, group string,
) (spans map[int32]span, dropped bool, err error) {
	starts, err := c.offsets(ctx, topic, driver.StartEarliest)
	if err != nil {
		return nil, false, err
	}
	ends, err := c.offsets(ctx, topic, driver.StartNew)
	if err != nil {
		return nil, false, err
	}
	committed, err := c.committed(ctx, group, topic)
	if err != nil {
		return nil, false, err
	}
	spans = map[int32]span{}
	ends.Each(func(end kadm.Offset) {
		start, _ := starts.Lookup(topic, end.Partition)
		from := int64(0)
		if at, ok := committed.Lookup(topic, end.Partition); ok {
			from = max(0, at.At)
		}
		dropped = dropped || from < start.At
		spans[end.Partition] = span{max(start.At, from), end.At}
	})
	return spans, dropped, nil
}
