package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Backlog is the distance from the group's commits to the ends of the partitions, and the messages
// before that with a start and no end marker. Copies for other groups count until they are skipped.
// A message that another process sends again may count twice until its end marker is written.
func (c *kmqConn) Backlog(ctx context.Context, topic, group string) (backlog driver.Backlog, err error) {
	if group == "" {
		group = defaultGroup(topic)
	}
	if err := c.consumers.flush(ctx, topic, group); err != nil {
		return backlog, err
	}
	// In this order no message is missed, and one that ends meanwhile may be counted.
	spans, dropped, err := c.uncommittedSpans(ctx, topic, group)
	if err != nil {
		return backlog, err
	}
	begun, err := c.begun(ctx, queue{topic: topic, group: group, markers: markersTopic(topic, group)})
	if err != nil {
		return backlog, err
	}
	for partition, s := range spans {
		backlog.Messages += max(0, s.end-s.from)
		if p := begun[partition]; p != nil {
			for offset := range p.messages {
				if offset < s.from { // else it is counted already
					backlog.Messages++
				}
			}
		}
	}
	backlog.Estimate = dropped || backlog.Messages > 0 && c.compacts(ctx, topic)
	return backlog, nil
}

// begun reads the markers of a group that trackers still need.
func (c *kmqConn) begun(ctx context.Context, q queue) (map[int32]*inProgress, error) {
	all := map[int32]*inProgress{}
	spans, _, err := c.uncommittedSpans(ctx, q.markers, q.trackers())
	if noTopic(err) { // the group had no consumer
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	err = c.readSpans(ctx, q.markers, spans, func(r *kgo.Record) {
		p := all[r.Partition]
		if p == nil {
			p = newInProgress()
			all[r.Partition] = p
		}
		p.read(r)
	})
	return all, err
}

// readSpans calls see for each record of parts of partitions, in the order of each partition.
func (c *conn) readSpans(ctx context.Context, topic string, spans map[int32]span, see func(*kgo.Record)) error {
	from := map[int32]kgo.Offset{}
	for partition, s := range spans {
		if s.from < s.end {
			from[partition] = kgo.NewOffset().At(s.from)
		}
	}
	if len(from) == 0 {
		return nil
	}
	cl, err := c.newClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.BrokerMaxReadBytes(1<<30),
	)
	if err != nil {
		return err
	}
	defer cl.drop()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for len(from) > 0 {
		fetches := cl.PollRecords(ctx, 10_000)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading topic %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset < spans[r.Partition].end {
				see(r)
			}
			if r.Offset+1 >= spans[r.Partition].end {
				delete(from, r.Partition)
			}
		})
	}
	return nil
}
