package kafka

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Headers of a copy. The first is KMQ's own; by the second other groups of the topic skip it.
const (
	redeliveryCount = "kmq-redelivery-count" // 4 bytes, big endian
	redeliveryGroup = "kmq-redelivery-group"
)

// queue is the configuration of a topic and group, shared by consumers and trackers.
type queue struct {
	topic, group   string
	markers        string // the topic of markers
	letters        string // the topic of dead letters, or ""
	redeliverAfter time.Duration
	maxAttempts    int64 // 0 is no limit
}

func newQueue(topic, group string, v driver.Values) queue {
	return queue{
		topic: topic, group: group, markers: markersTopic(topic, group), letters: v.String("deadLetterTopic"),
		redeliverAfter: v.Duration("redeliverAfter"), maxAttempts: v.Int("maxAttempts"),
	}
}

// attempt returns the number of a message's deliveries, this one included.
func attempt(r *kgo.Record) int64 {
	if count, ok := header(r, redeliveryCount); ok && len(count) == 4 {
		return int64(binary.BigEndian.Uint32(count)) + 1
	}
	return 1
}

// mine returns false for a copy that belongs to another group.
func (q *queue) mine(r *kgo.Record) bool {
	group, isCopy := header(r, redeliveryGroup)
	return !isCopy || string(group) == q.group
}

func header(r *kgo.Record, name string) (value []byte, ok bool) {
	for _, h := range r.Headers {
		if h.Key == name {
			return h.Value, true
		}
	}
	return nil, false
}

func ours(header string) bool { return header == redeliveryCount || header == redeliveryGroup }

// again returns the copy that redelivers a message at the end of its partition. After maxAttempts
// it returns the dead letter, or nil if there is none.
func (q *queue) again(r *kgo.Record, delivered int64) *kgo.Record {
	if q.maxAttempts > 0 && delivered >= q.maxAttempts {
		return q.letter(r)
	}
	count := binary.BigEndian.AppendUint32(nil, uint32(delivered)) //gosec:disable G115 -- far below the limit
	again := copied(r, q.topic, r.Partition)
	again.Headers = append(again.Headers,
		kgo.RecordHeader{Key: redeliveryCount, Value: count},
		kgo.RecordHeader{Key: redeliveryGroup, Value: []byte(q.group)})
	return again
}

// letter returns the copy for the topic of dead letters; nil if there is none.
func (q *queue) letter(r *kgo.Record) *kgo.Record {
	if q.letters == "" {
		return nil
	}
	return copied(r, q.letters, -1) // the topic may have fewer partitions
}

// copied leaves the timestamp to the client, which fails a message with an old one at once.
func copied(r *kgo.Record, topic string, partition int32) *kgo.Record {
	return &kgo.Record{
		Topic: topic, Partition: partition, Key: r.Key, Value: r.Value,
		Headers: slices.DeleteFunc(slices.Clone(r.Headers), func(h kgo.RecordHeader) bool { return ours(h.Key) }),
	}
}

// move sends each copy and, once the broker has it, the end marker of its message. A message with a
// nil copy gets its end marker only.
func (q *queue) move(c *client, messages, copies []*kgo.Record, done func(i int, err error)) {
	for i, end := range endMarkers(q.markers, messages) {
		ended := func(_ *kgo.Record, err error) { done(i, err) }
		if copies[i] == nil {
			c.Produce(context.Background(), end, ended)
			continue
		}
		c.Produce(context.Background(), copies[i], func(_ *kgo.Record, err error) {
			if err != nil {
				done(i, err)
				return
			}
			c.Produce(context.Background(), end, ended) // does not block: the client's buffer has no limit
		})
	}
}

// answers collects the errors of a batch of records.
type answers struct{ results chan error }

func newAnswers(n int) *answers { return &answers{make(chan error, n)} }

func (a *answers) done(_ int, err error) { a.results <- err }

// wait returns the first error, or ctx's.
func (a *answers) wait(ctx context.Context) (err error) {
	for range cap(a.results) {
		select {
		case result := <-a.results:
			err = cmp.Or(err, result)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
