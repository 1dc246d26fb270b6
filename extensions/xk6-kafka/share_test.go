package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func shared(t testing.TB) *fixture {
	t.Helper()
	url := server("BROKER_URL_KAFKA_SHARE")
	if url == "" {
		t.Skip("no BROKER_URL_KAFKA_SHARE")
	}
	return newFixture(t, url)
}

// The client library accepts, at each poll, what was polled before and is not settled. The driver must not.
func TestNothingIsAcceptedUnasked(t *testing.T) {
	t.Parallel()
	f := shared(t)
	topic := f.topic(t, 1)
	p := f.producer(t, topic, nil)
	c := f.consumer(t, topic, topic)
	var open driver.Batch
	for i := range 10 { // each is polled alone, and followed by another poll
		f.send(t, p, numbered("m", 10)[i:i+1])
		m := take(t, c, 1)
		if i%2 == 0 {
			open = append(open, m...)
		} else if err := c.Settle(within(t), m, driver.Ack); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, c)
	other := f.consumer(t, topic, topic)
	defer func() { closed(t, other) }()
	again := map[string]int32{}
	for _, m := range take(t, other, len(open)) {
		again[string(m.Body)] = m.Attempt
	}
	for _, m := range open {
		if again[string(m.Body)] != 2 {
			t.Errorf("%s was not settled, and came again with attempt %d, want 2", m.Body, again[string(m.Body)])
		}
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	f := shared(t)
	topic := f.topic(t, 1)
	c := f.consumer(t, topic, topic, func(c *driver.ConsumerConfig) { c.ConfirmSettle = true })
	defer func() { closed(t, c) }()
	f.send(t, f.producer(t, topic, nil), numbered("m", 1))
	for attempt := range int32(4) { // the broker gives up after 5
		m := take(t, c, 1)
		if m[0].Attempt != attempt+1 {
			t.Errorf("delivery %d has attempt %d", attempt+1, m[0].Attempt)
		}
		if err := c.Settle(within(t), m, driver.Requeue); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Settle(within(t), take(t, c, 1), driver.Reject); err != nil {
		t.Fatal(err)
	}
}

// A share group that begins at the end begins there at once, not with its first fetch.
func TestShareGroupMissesNothing(t *testing.T) {
	t.Parallel()
	f := shared(t)
	topic := f.topic(t, 3)
	p := f.producer(t, topic, nil)
	f.send(t, p, numbered("before", 30))
	c := f.consumer(t, topic, "")
	defer func() { closed(t, c) }()
	f.send(t, p, numbered("after", 30))
	until(t, c, numbered("after", 30))
}

// A share group that has members cannot be told where to begin with a further topic: its config says so, and must say the same.
func TestShareGroupWithMembersBeginsWhereItsConfigSays(t *testing.T) {
	t.Parallel()
	f := shared(t)
	one, another := f.topic(t, 1), f.topic(t, 2)
	group := newTopicName()
	f.send(t, f.producer(t, another, map[string]any{"partitioner": "roundrobin"}), numbered("before", 10))
	first := f.consumer(t, one, group)
	defer func() { closed(t, first) }()
	fromStart := driver.ConsumerConfig{
		Topic: another, Group: group, Prefetch: 100, Start: driver.StartEarliest, Options: f.values(t, driver.OnConsumer, nil),
	}
	_, err := f.conn.NewConsumer(within(t), fromStart)
	if err == nil || !strings.Contains(err.Error(), "at latest: set its config share.auto.offset.reset to earliest") ||
		f.address.Driver.KindOf(err) != driver.Rejected {
		t.Fatalf("%v; want it rejected by the name of the config", err)
	}

	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = shareReset, kmsg.StringPtr("earliest")
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(within(t), f.conn.(*conn).client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Resources[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	var second driver.Consumer
	for ctx := within(t); second == nil; time.Sleep(10 * time.Millisecond) { // until the config has come to the broker
		if second, err = f.conn.NewConsumer(ctx, fromStart); err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	defer func() { closed(t, second) }()
	until(t, second, numbered("before", 10))
}

func TestAGroupOfAnotherKindIsNoShareGroup(t *testing.T) {
	t.Parallel()
	f, other := shared(t), single(t)
	topic := f.topic(t, 1)
	closed(t, other.consumer(t, topic, topic))
	_, err := f.conn.NewConsumer(within(t), driver.ConsumerConfig{
		Topic: topic, Group: topic, Prefetch: 1, Start: driver.StartNew, Options: f.values(t, driver.OnConsumer, nil),
	})
	if want := "group " + topic + " exists and is no share group"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
}

// What is settled is in no backlog, also before the next fetch, with which the library sends it.
func TestSharesThatAreSettledAreInNoBacklog(t *testing.T) {
	t.Parallel()
	f := shared(t)
	topic := f.topic(t, 1)
	c := f.consumer(t, topic, topic, earliest)
	defer func() { closed(t, c) }()
	f.send(t, f.producer(t, topic, nil), numbered("m", 10))
	b := take(t, c, 10)
	for n := range 10 {
		if err := c.Settle(within(t), b[n:n+1], driver.Ack); err != nil {
			t.Fatal(err)
		}
		if got, err := f.conn.(driver.Backlogger).Backlog(within(t), topic, topic); err != nil || got.Messages != int64(9-n) {
			t.Errorf("after settling %d messages the backlog is %d, %v", n+1, got.Messages, err)
		}
	}
}
