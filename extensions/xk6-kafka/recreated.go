package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The library keeps to the topic that it began with. Of one that was deleted and created again by the same name it goes on saying that there is no
// such topic, until it is told to forget the first.

// noTopic reports whether a topic is not there, or not the one that the client knows.
func noTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.InconsistentTopicID)
}

// forget makes the next message go to the topic that has the name now. What is buffered fails.
func (p *producer) forget() {
	if !p.forgetting.CompareAndSwap(false, true) {
		return
	}
	p.outstanding.Add(1) // whose message failed is still counted, so Close does not wait yet
	go func() {          // the library waits for promises
		defer p.outstanding.Done()
		p.PurgeTopicsFromProducing(p.topic)
		p.forgetting.Store(false)
	}()
}

// again begins with the topic that has the name now, if there is one: all that it holds came after this consumer.
func (r *reader) again(ctx context.Context) error {
	from, err := r.conn.offsets(ctx, r.topic, driver.StartEarliest)
	if err != nil {
		return err
	}
	r.PurgeTopicsFromConsuming(r.topic)
	if r.direct {
		r.AddConsumePartitions(from.KOffsets())
	} else {
		r.AddConsumeTopics(r.topic)
	}
	return nil
}

// lookEvery is how often a member of a share group to which nothing comes looks whether its topic is still the same: the library, which is
// assigned partitions of a topic that it does not know, does not say so.
const lookEvery = time.Second

// errAnew tells that there will be nothing for a while, and why.
var errAnew = fmt.Errorf("the topic was deleted and created again, and the broker takes its time to give the share group the new one: %w", kerr.UnknownTopicID)

// await is poll, for a topic that may be created again. The group then begins with it where its config says.
func (s *shareConsumer) await(ctx context.Context, n int, records []*kgo.Record) (_ []*kgo.Record, err error) {
	for {
		brief, cancel := context.WithDeadline(ctx, s.same.Add(lookEvery))
		records, err = s.poll(brief, n, records)
		cancel()
		if len(records) > 0 {
			s.same = time.Now()
		}
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return records, err
		}
		now, err := s.conn.metadata(ctx, s.topic)
		if err == nil && now.TopicID != s.id {
			if err = s.again(ctx); err == nil { // else the next call tries again
				s.id, err = now.TopicID, errAnew
			}
		}
		if err != nil {
			return records, err
		}
		s.same = time.Now()
	}
}

// began knows, by their ids, the topics that share groups of this process began with where they were told to.
var began = bases{id: map[[2]string][16]byte{}}

type bases struct {
	mu sync.Mutex
	id map[[2]string][16]byte // by group and topic
}

// note notes the topic of a group, the first time and after forget.
func (b *bases) note(group, topic string, id [16]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key := [2]string{group, topic}; b.id[key] == [16]byte{} {
		b.id[key] = id
	}
}

func (b *bases) forget(group, topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.id, [2]string{group, topic})
}

// errBeganElsewhere keeps what the group was never given from being called lost: the log may have it, before the place where the group began.
var errBeganElsewhere = errors.New("the topic was deleted and created again while the share group had members: where the group began with the new one is not known")

// sameTopic fails where the topic is not the one that the group began with.
func (c *conn) sameTopic(ctx context.Context, topic, group string) error {
	began.mu.Lock()
	id, known := began.id[[2]string{group, topic}]
	began.mu.Unlock()
	if !known {
		return nil
	}
	now, err := c.metadata(ctx, topic)
	if err == nil && now.TopicID != id {
		err = errBeganElsewhere
	}
	return err
}
