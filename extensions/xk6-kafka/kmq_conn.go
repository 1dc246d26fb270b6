package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A batch of these bytes leaves room for the headers of a message that is sent again, in which the group's name is.
const (
	kmqBatchBytes      = 1_048_588 - 1024
	maxKMQMessageBytes = maxMessageBytes - 1024
)

// kmqConn is a connection whose topics are queues by KMQ's protocol.
type kmqConn struct {
	*conn
	template string // of the names of markers' topics

	mu        sync.Mutex
	consumers map[*kmqConsumer]struct{} // that are open
}

func openKMQ(ctx context.Context, t driver.Target) (driver.Conn, error) {
	template := t.Options.String("markersTopic")
	if !strings.Contains(template, "{group}") || !strings.Contains(template, "{topic}") {
		return nil, &driver.OptionError{Name: "markersTopic", Err: fmt.Errorf("%q lacks {topic} or {group}: markers of several would be taken for one another's", template)}
	}
	c, err := dial(ctx, t)
	if err != nil {
		return nil, err
	}
	return &kmqConn{conn: c, template: template, consumers: map[*kmqConsumer]struct{}{}}, nil
}

func (c *kmqConn) markersTopic(topic, group string) string {
	return strings.NewReplacer("{topic}", topic, "{group}", group).Replace(c.template)
}

// makeMarkersTopic makes the topic of a group's markers where it is not there, and fails where it has too few partitions.
func (c *kmqConn) makeMarkersTopic(ctx context.Context, q queue) error {
	topic, err := c.metadata(ctx, q.topic)
	if err != nil {
		return err
	}
	n := len(topic.Partitions)
	there, err := c.metadata(ctx, q.markers)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = c.conn.CreateTopic(ctx, driver.TopicSpec{
			Name: q.markers, Partitions: n, Replicas: len(topic.Partitions[0].Replicas),
			Options: driver.Values{"configs": map[string]any{"message.timestamp.type": "LogAppendTime"}},
		})
		if err == nil {
			there, err = c.metadata(ctx, q.markers)
		}
	}
	if err == nil && len(there.Partitions) < n {
		err = fmt.Errorf("topic %s has %d partitions, and %s, whose markers it is for, %d", q.markers, len(there.Partitions), q.topic, n)
	}
	if errors.Is(err, kerr.InvalidTopicException) || err == nil && len(there.Partitions) < n {
		return &driver.OptionError{Name: "markersTopic", Err: err}
	}
	return err
}

// markersTopics are those of all groups of a topic.
func (c *kmqConn) markersTopics(ctx context.Context, topic string) (names []string, err error) {
	all, err := c.admin.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	before, after, _ := strings.Cut(c.markersTopic(topic, "{group}"), "{group}")
	for _, name := range all.Names() {
		if len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			names = append(names, name)
		}
	}
	return names, nil
}

// DeleteTopic deletes the topics of its markers, too.
func (c *kmqConn) DeleteTopic(ctx context.Context, topic string) error {
	if err := c.conn.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	return c.eachMarkersTopic(ctx, topic, c.conn.DeleteTopic)
}

// PurgeTopic forgets what was begun, too.
func (c *kmqConn) PurgeTopic(ctx context.Context, topic string) error {
	if err := c.conn.PurgeTopic(ctx, topic); err != nil {
		return err
	}
	return c.eachMarkersTopic(ctx, topic, c.conn.PurgeTopic)
}

func (c *kmqConn) eachMarkersTopic(ctx context.Context, topic string, do func(context.Context, string) error) error {
	names, err := c.markersTopics(ctx, topic)
	for _, name := range names {
		if failed := do(ctx, name); !noTopic(failed) { // or another has deleted it meanwhile
			err = errors.Join(err, failed)
		}
	}
	return err
}
