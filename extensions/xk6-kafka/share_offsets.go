package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// defaultGroup is the one share group of a topic whose consumers name none: the topic's only, shared flow.
func defaultGroup(topic string) string { return "xk6-broker-" + topic }

// anchorShare sets where a share group begins, in the partitions where it has not begun. Left to itself it would begin
// where its group config says, at the moment of its first fetch, and lose what was sent until then. That is what it does
// all the same, and anchored is false, where the group has members already, as on another topic.
func (c *conn) anchorShare(ctx context.Context, topic, group string, start driver.Start) (anchored bool, err error) {
	begin, err := c.offsets(ctx, topic, start)
	if err != nil {
		return false, err
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
		return true, err
	}
	err = c.patiently(ctx, func() error {
		altered, err := c.admin.AlterShareGroupOffsets(ctx, group, at)
		for _, partition := range altered[topic] {
			err = cmp.Or(err, partition)
		}
		return err
	})
	switch {
	case err == nil:
		if len(at[topic]) == len(begin[topic]) {
			began.forget(group, topic)
		}
		return true, nil
	case errors.Is(err, kerr.GroupIDNotFound): // one that is not there would have been made
		return false, fmt.Errorf("group %s is there already, and is no share group: %w", group, err)
	case !errors.Is(err, kerr.NonEmptyGroup):
		return false, fmt.Errorf("offsets of share group %s for topic %s: %w", group, topic, err)
	}
	if at, err = missing(); err != nil || len(at) == 0 { // a member on this topic was there first
		return true, err
	}
	return false, c.beginsAt(ctx, topic, group, start)
}

// shareReset is the config of a share group that says where it begins with a topic.
const shareReset = "share.auto.offset.reset"

// beginsAt checks that a share group begins with further topics where it shall.
func (c *conn) beginsAt(ctx context.Context, topic, group string, start driver.Start) error {
	request := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.ConfigNames = kmsg.ConfigResourceTypeGroupConfig, group, []string{shareReset}
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	want := map[driver.Start]string{driver.StartNew: "latest", driver.StartEarliest: "earliest"}[start]
	for _, r := range answer.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return fmt.Errorf("config of share group %s: %w", group, err)
		}
		for _, config := range r.Configs {
			if config.Value != nil && *config.Value != want {
				return fmt.Errorf("share group %s has members on other topics, and so begins with topic %s where its config %s says, at %s: "+
					"set that to %s, or open this topic's consumer before the others: %w", group, topic, shareReset, *config.Value, want, kerr.NonEmptyGroup)
			}
		}
	}
	return nil
}

// shareBacklog is the broker's own count, where it keeps one, else how far the group's start is behind the end.
func (c *conn) shareBacklog(ctx context.Context, topic, group string) (backlog driver.Backlog, err error) {
	if group == "" {
		group = defaultGroup(topic)
	}
	if err := c.sameTopic(ctx, topic, group); err != nil {
		return backlog, err
	}
	if err := c.flushShared(ctx, topic, group); err != nil {
		return backlog, err
	}
	from, err := c.shareOffsets(ctx, topic, group)
	if err != nil {
		return backlog, err
	}
	ends, err := c.offsets(ctx, topic, driver.StartNew)
	if err != nil {
		return backlog, err
	}
	starts, err := c.offsets(ctx, topic, driver.StartEarliest)
	if err != nil {
		return backlog, err
	}
	ends.Each(func(end kadm.Offset) {
		at, ok := from[end.Partition]
		start, _ := starts.Lookup(topic, end.Partition)
		switch {
		case ok && at.StartOffset >= 0 && at.Lag >= 0:
			backlog.Messages += at.Lag
		default:
			backlog.Messages += max(0, end.At-max(start.At, at.StartOffset))
		}
	})
	return backlog, nil
}

// flushShared sends what this connection's own members have settled and the library keeps for their next fetch.
func (c *conn) flushShared(ctx context.Context, topic, group string) error {
	c.mu.Lock()
	var members []*shareConsumer
	for s := range c.sharing {
		if s.topic == topic && s.group == group {
			members = append(members, s)
		}
	}
	c.mu.Unlock()
	for _, s := range members {
		if err := s.FlushAcks(ctx); err != nil {
			return err
		}
	}
	return nil
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
