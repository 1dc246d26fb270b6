package kafka

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// reports is what a consumer reported of its settlements.
type reports struct {
	mu                sync.Mutex
	confirmed, failed int
	err               error
}

func reportsOf(c driver.Consumer) *reports {
	r := &reports{}
	c.(driver.SettleReporter).OnSettled(func(_ driver.Outcome, n int, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.failed, r.err = r.failed+n, err
		} else {
			r.confirmed += n
		}
	})
	return r
}

func (r *reports) want(t *testing.T, confirmed, failed int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.confirmed != confirmed || r.failed != failed {
		t.Errorf("%d settlements confirmed and %d failed (%v), want %d and %d", r.confirmed, r.failed, r.err, confirmed, failed)
	}
}

func settled(t *testing.T, c driver.Consumer, b driver.Batch) {
	t.Helper()
	if err := c.Settle(within(t), b, driver.Ack); err != nil {
		t.Fatal(err)
	}
}

// A commit speaks for all before it, and never passes a message that is not settled.
func TestSettle_Commit_ReportsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	c := f.consumer(t, topic, topic, with(t, f, map[string]any{"commitInterval": "1h"}))
	r := reportsOf(c)
	f.send(t, f.producer(t, topic, nil), numbered("m", 10))
	b := take(t, c, 10)
	settled(t, c, b[:4])
	settled(t, c, b[6:])
	r.want(t, 0, 0)
	if _, err := f.conn.(driver.Backlogger).Backlog(within(t), topic, topic); err != nil { // it commits
		t.Fatal(err)
	}
	r.want(t, 4, 0)
	settled(t, c, b[4:5])
	closed(t, c)
	r.want(t, 5, 0)
}

func TestSettle_CommitRefused_ReportsTheError(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	c := f.consumer(t, topic, topic, with(t, f, map[string]any{"commitInterval": "1h"}))
	r := reportsOf(c)
	f.send(t, f.producer(t, topic, nil), numbered("m", 10))
	settled(t, c, take(t, c, 10))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Close(ended) // the commit cannot be sent
	r.want(t, 0, 10)
}

func TestSettle_ShareLockOver_ReportsTheError(t *testing.T) {
	t.Parallel()
	f := shared(t)
	topic := f.topic(t, 1)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, topic
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.record.lock.duration.ms", kmsg.StringPtr("15000") // the least by default
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(within(t), f.conn.(*conn).client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Resources[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := f.consumer(t, topic, topic)
	r := reportsOf(c)
	f.send(t, f.producer(t, topic, nil), numbered("m", 10))
	b := take(t, c, 10)
	other := f.consumer(t, topic, topic)
	theirs := reportsOf(other)
	again := take(t, other, 10) // when the lock is over
	settled(t, c, b)
	settled(t, other, again)
	closed(t, c)
	closed(t, other)
	r.want(t, 0, 10)
	theirs.want(t, 10, 0)
	if !errors.Is(r.err, kerr.InvalidRecordState) {
		t.Errorf("%v, want %v", r.err, kerr.InvalidRecordState)
	}
}

// Settlements that come while others are under way wait for their answer, and each is reported once.
func TestSettle_ShareOneByOne_ReportsEach(t *testing.T) {
	t.Parallel()
	f := shared(t)
	topic := f.topic(t, 2)
	c := f.consumer(t, topic, topic)
	r := reportsOf(c)
	f.send(t, f.producer(t, topic, nil), numbered("m", 300))
	for range 300 {
		settled(t, c, take(t, c, 1))
	}
	closed(t, c)
	r.want(t, 300, 0)
}
