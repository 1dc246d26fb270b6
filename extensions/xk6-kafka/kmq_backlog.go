package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Backlog is how far the group is behind the ends of the partitions, and how many messages before that have begun and not ended. What was sent again
// for another group counts until it is passed over, and a message that another process is sending again may count twice until its end marker is there.
func (c *kmqConn) Backlog(ctx context.Context, topic, group string) (backlog driver.Backlog, err error) {
	if group == "" {
		group = defaultGroup(topic)
	}
	for _, k := range c.open(topic, group) {
		if err := errors.Join(k.Flush(ctx), k.tracker.Flush(ctx)); err != nil {
			return backlog, err
		}
	}
	// In this order a message may be counted although it has ended since, and none is missed.
	ahead, err := c.uncommittedSpans(ctx, topic, group)
	if err != nil {
		return backlog, err
	}
	begun, err := c.begun(ctx, queue{topic: topic, group: group, markers: c.markersTopic(topic, group)})
	if err != nil {
		return backlog, err
	}
	for partition, s := range ahead {
		backlog.Messages += max(0, s.end-s.from)
		if p := begun[partition]; p != nil {
			for offset := range p.messages {
				if offset < s.from { // else it is counted already
					backlog.Messages++
				}
			}
		}
	}
	backlog.Estimate = backlog.Messages > 0 && c.compacts(ctx, topic)
	return backlog, nil
}

func (c *kmqConn) open(topic, group string) (all []*kmqConsumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.consumers {
		if k.queue.topic == topic && k.queue.group == group {
			all = append(all, k)
		}
	}
	return all
}

// begun reads the markers of a group that trackers still need.
func (c *kmqConn) begun(ctx context.Context, q queue) (map[int32]*inProgress, error) {
	all := map[int32]*inProgress{}
	ahead, err := c.uncommittedSpans(ctx, q.markers, q.trackers())
	if noTopic(err) { // no consumer has been there
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	spans := map[int32]span{}
	for partition, s := range ahead {
		spans[partition] = s.span
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

// readSpans reads parts of partitions that are there, in the order of each.
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
	cl, err := c.newClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchMaxWait(100*time.Millisecond), kgo.BrokerMaxReadBytes(1<<30))
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
