package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// defaultGroup is the group of a topic's consumers without one.
func defaultGroup(topic string) string { return "xk6-broker-" + topic }

// anchorShare sets the beginning of a share group in partitions where it has not begun: on its own
// it begins at its first fetch. anchored is false if the group has members, such as on another
// topic, so that the broker refuses.
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
	err = c.retry(ctx, func() error {
		altered, err := c.admin.AlterShareGroupOffsets(ctx, group, at)
		for _, partition := range altered[topic] {
			err = cmp.Or(err, partition)
		}
		return err
	})
	switch {
	case err == nil:
		if len(at[topic]) == len(begin[topic]) {
			shareTopics.Delete(shareKey{c.hosts, topic, group})
		}
		return true, nil
	case errors.Is(err, kerr.GroupIDNotFound): // an absent one would have been created
		return false, fmt.Errorf("group %s exists and is no share group: %w", group, err)
	case !errors.Is(err, kerr.NonEmptyGroup):
		return false, fmt.Errorf("offsets of share group %s for topic %s: %w", group, topic, err)
	}
	if at, err = missing(); err != nil || len(at) == 0 { // a member on this topic was first
		return true, err
	}
	return false, c.checkReset(ctx, topic, group, start)
}

// shareReset is the config of a share group for its beginning with a topic.
const shareReset = "share.auto.offset.reset"

// checkReset checks that a share group's config has the beginning that the consumer needs.
func (c *conn) checkReset(ctx context.Context, topic, group string, start driver.Start) error {
	request := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	resource.ConfigNames = []string{shareReset}
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
				return fmt.Errorf("share group %s has members on other topics and begins with topic %s at %s: "+
					"set its config %s to %s, or open this topic's consumer first: %w",
					group, topic, *config.Value, shareReset, want, kerr.NonEmptyGroup)
			}
		}
	}
	return nil
}

// shareBacklog returns the broker's count, or else the distance from the group's start to the end.
func (c *conn) shareBacklog(ctx context.Context, topic, group string) (backlog driver.Backlog, err error) {
	if group == "" {
		group = defaultGroup(topic)
	}
	if err := c.checkRecreated(ctx, topic, group); err != nil {
		return backlog, err
	}
	if err := c.consumers.flush(ctx, topic, group); err != nil {
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

// shareOffsets returns the offsets of a share group, in the partitions where it has begun.
func (c *conn) shareOffsets(ctx context.Context, topic, group string) (at map[int32]kadm.ShareOffset, err error) {
	err = c.retry(ctx, func() error {
		described, err := c.admin.DescribeShareGroupOffsets(ctx, group)
		d := described[group]
		if errors.Is(d.Err, kerr.GroupIDNotFound) {
			return nil // it has begun nowhere
		}
		at = d.Offsets[topic]
		return cmp.Or(err, d.Err)
	})
	return at, err
}

// shareTopics has the id of the topic with which a share group of this process began.
var shareTopics sync.Map // [16]byte by shareKey

type shareKey struct{ hosts, topic, group string }

var errRecreated = errors.New("the topic was deleted and created again while the share group had members: " +
	"the group's beginning in the new one is not known")

// checkRecreated fails if the topic is not the one with which the share group began.
func (c *conn) checkRecreated(ctx context.Context, topic, group string) error {
	now, err := c.metadata(ctx, topic)
	if err != nil {
		return err
	}
	if first, _ := shareTopics.LoadOrStore(shareKey{c.hosts, topic, group}, now.TopicID); first != now.TopicID {
		return errRecreated
	}
	return nil
}
