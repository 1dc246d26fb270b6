package kafka

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The library keeps the id of a topic. If the topic is deleted and created again by the same name,
// it reports an unknown topic until it forgets the first.

// noTopic reports whether a topic is absent or is not the one the client opened.
func noTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) ||
		errors.Is(err, kerr.InconsistentTopicID)
}

// forget makes the next message go to the topic that has the name now. Buffered messages fail.
func (p *producer) forget() {
	if !p.forgetting.CompareAndSwap(false, true) {
		return
	}
	p.outstanding.Add(1) // the failed message is still counted, so Close does not wait yet
	go func() {          // the library waits for promises
		defer p.outstanding.Done()
		p.PurgeTopicsFromProducing(p.topic)
		p.forgetting.Store(false)
	}()
}

// again begins with all of the topic that has the name now, because it is newer than the consumer.
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
