package kafka

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Headers of a message that was sent again. The first is KMQ's own; the second is for the other groups of the topic, to which it is none of theirs.
const (
	redeliveryCount = "kmq-redelivery-count" // 4 bytes, big endian
	redeliveryGroup = "kmq-redelivery-group"
)

// queue is a topic as one group has it: what its consumers and its trackers know alike.
type queue struct {
	topic, group   string
	markers        string // the topic
	letters        string // the topic of dead letters, or ""
	redeliverAfter time.Duration
	requeueDelay   time.Duration
	maxAttempts    int64 // or 0
}

func (c *kmqConn) queue(topic, group string, v driver.Values) queue {
	return queue{
		topic: topic, group: group, markers: c.markersTopic(topic, group), letters: v.String("deadLetterTopic"),
		redeliverAfter: v.Duration("redeliverAfter"), requeueDelay: v.Duration("requeueDelay"), maxAttempts: v.Int("maxAttempts"),
	}
}

// attempt counts the deliveries of a message with this one.
func attempt(r *kgo.Record) int64 {
	if count, ok := header(r, redeliveryCount); ok && len(count) == 4 {
		return int64(binary.BigEndian.Uint32(count)) + 1
	}
	return 1
}

// mine is false for a message that was sent again for another group.
func (q *queue) mine(r *kgo.Record) bool {
	group, again := header(r, redeliveryGroup)
	return !again || string(group) == q.group
}

func header(r *kgo.Record, name string) (value []byte, ok bool) {
	for _, h := range r.Headers {
		if h.Key == name {
			return h.Value, true
		}
	}
	return nil, false
}

func ours(h kgo.RecordHeader) bool { return h.Key == redeliveryCount || h.Key == redeliveryGroup }

// again is a message as it is sent to the topic once more, behind everything that is there: the same but for the place, the time and the headers above. It is a
// dead letter, or nil, where it was delivered as often as may be.
func (q *queue) again(r *kgo.Record, delivered int64) *kgo.Record {
	if q.maxAttempts > 0 && delivered >= q.maxAttempts {
		return q.letter(r)
	}
	again := copied(r, q.topic, r.Partition)
	again.Headers = append(again.Headers,
		kgo.RecordHeader{Key: redeliveryCount, Value: binary.BigEndian.AppendUint32(nil, uint32(delivered))}, //gosec:disable G115 -- it takes a while to deliver more
		kgo.RecordHeader{Key: redeliveryGroup, Value: []byte(q.group)})
	return again
}

// letter is a message as it goes to the topic of dead letters; nil where there is none.
func (q *queue) letter(r *kgo.Record) *kgo.Record {
	if q.letters == "" {
		return nil
	}
	return copied(r, q.letters, -1) // the topic need not have as many partitions
}

// copied has the time at which it is sent: by that of the message, the client would give up an old one at once.
func copied(r *kgo.Record, topic string, partition int32) *kgo.Record {
	return &kgo.Record{
		Topic: topic, Partition: partition, Key: r.Key, Value: r.Value,
		Headers: slices.DeleteFunc(slices.Clone(r.Headers), ours),
	}
}

// move sends each copy and then, once the broker has it, the end marker of its message. A nil copy leaves only the end.
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
			c.Produce(context.Background(), end, ended) // never waits: the client's buffer has no limit
		})
	}
}

// answers waits for what a batch of records came to.
type answers struct {
	left atomic.Int64
	over chan struct{}
	mu   sync.Mutex
	err  error // the first
}

func newAnswers(n int) *answers {
	a := &answers{over: make(chan struct{})}
	if a.left.Store(int64(n)); n == 0 {
		close(a.over)
	}
	return a
}

func (a *answers) done(_ int, err error) {
	if err != nil {
		a.mu.Lock()
		if a.err == nil {
			a.err = err
		}
		a.mu.Unlock()
	}
	if a.left.Add(-1) == 0 {
		close(a.over)
	}
}

// wait returns the first error, or that of ctx.
func (a *answers) wait(ctx context.Context) error {
	select {
	case <-a.over:
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
