package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Batches of these bytes leave room for the headers of a copy, which include the group's name.
const (
	kmqBatchBytes      = 1_048_588 - 1024
	maxKMQMessageBytes = maxMessageBytes - 1024
)

// kmqConn is a connection whose topics are queues by KMQ's protocol.
type kmqConn struct{ *conn }

func openKMQ(ctx context.Context, t driver.Target) (driver.Conn, error) {
	c, err := dial(ctx, t)
	if err != nil {
		return nil, err
	}
	return &kmqConn{c}, nil
}

// markersTopic returns the name of the topic of a group's markers, which begins with
// markersOf(topic).
func markersTopic(topic, group string) string { return markersOf(topic) + group }

func markersOf(topic string) string { return topic + "__markers__" }

// makeMarkersTopic creates the topic of a group's markers if it is absent. It fails if the topic
// has too few partitions.
func (c *kmqConn) makeMarkersTopic(ctx context.Context, q queue) error {
	topic, err := c.metadata(ctx, q.topic)
	if err != nil {
		return err
	}
	n := len(topic.Partitions)
	markers, err := c.metadata(ctx, q.markers)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = c.conn.CreateTopic(ctx, driver.TopicSpec{
			Name: q.markers, Partitions: n, Replicas: len(topic.Partitions[0].Replicas),
			Options: driver.Values{"configs": map[string]any{"message.timestamp.type": "LogAppendTime"}},
		})
		if err == nil {
			markers, err = c.metadata(ctx, q.markers)
		}
	}
	if err == nil && len(markers.Partitions) < n {
		err = fmt.Errorf("topic %s has %d partitions, %s has %d: %w",
			q.markers, len(markers.Partitions), q.topic, n, kerr.InvalidPartitions)
	}
	return err
}

// markersTopics lists the topics of markers of all groups of a topic.
func (c *kmqConn) markersTopics(ctx context.Context, topic string) (names []string, err error) {
	all, err := c.admin.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range all.Names() {
		if strings.HasPrefix(name, markersOf(topic)) {
			names = append(names, name)
		}
	}
	return names, nil
}

// DeleteTopic deletes a topic and its topics of markers.
func (c *kmqConn) DeleteTopic(ctx context.Context, topic string) error {
	if err := c.conn.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	return c.eachMarkersTopic(ctx, topic, c.conn.DeleteTopic)
}

// PurgeTopic purges a topic and its topics of markers.
func (c *kmqConn) PurgeTopic(ctx context.Context, topic string) error {
	if err := c.conn.PurgeTopic(ctx, topic); err != nil {
		return err
	}
	return c.eachMarkersTopic(ctx, topic, c.conn.PurgeTopic)
}

func (c *kmqConn) eachMarkersTopic(ctx context.Context, topic string, do func(context.Context, string) error) error {
	names, err := c.markersTopics(ctx, topic)
	for _, name := range names {
		if failed := do(ctx, name); !noTopic(failed) { // another client may have deleted it
			err = errors.Join(err, failed)
		}
	}
	return err
}
