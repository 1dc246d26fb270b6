package kafka

import (
	"errors"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Producers and consumers of a topic that was deleted and created again fail, and a new consumer receives.
func TestTopicCreatedAgain_OpenOnesFail(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) { single(t).createdAgain(t, false) })
	t.Run("in a group", func(t *testing.T) { single(t).createdAgain(t, true) })
	t.Run("with markers", func(t *testing.T) { markedQueue(t).createdAgain(t, true) })
}

func (f *fixture) createdAgain(t *testing.T, grouped bool) {
	t.Parallel()
	topic, group := f.topic(t, 2), ""
	if grouped {
		group = topic
	}
	p, c := f.producer(t, topic, nil), f.consumer(t, topic, group)
	f.send(t, p, numbered("before", 3))
	if err := c.Settle(within(t), take(t, c, 3), driver.Ack); err != nil {
		t.Fatal(err)
	}
	if err := f.admin().DeleteTopic(within(t), topic); err != nil {
		t.Fatal(err)
	}
	spec := driver.TopicSpec{Name: topic, Partitions: 2, Replicas: 1, Options: f.values(t, driver.OnTopic, nil)}
	if err := f.admin().CreateTopic(within(t), spec); err != nil {
		t.Fatal(err)
	}
	for _, err := range sendAll(within(t), p, numbered("between", 3)) {
		if kind := classify(err); kind != driver.NotFound {
			t.Errorf("send by the open producer: %v: %v, want not_found", kind, err)
		}
	}
	n, err := c.Receive(within(t), make(driver.Batch, 1))
	if kind := classify(err); n != 0 || kind != driver.NotFound {
		t.Errorf("receive by the open consumer: %d messages, %v: %v, want not_found", n, kind, err)
	}
	_ = c.Close(within(t)) // it may return the error of the deleted topic

	c = f.consumer(t, topic, group)
	defer func() { closed(t, c) }()
	f.send(t, f.producer(t, topic, nil), numbered("after", 3))
	until(t, c, numbered("after", 3))
}

// The backlog of a share group is not known if its topic was created again while it had members.
func TestBacklog_ShareGroupsTopicRecreated_NotKnown(t *testing.T) {
	t.Parallel()
	f := shared(t)
	topic := f.topic(t, 2)
	config := driver.ConsumerConfig{
		Topic: topic, Group: topic, Prefetch: 100, Start: driver.StartNew, Options: f.values(t, driver.OnConsumer, nil),
	}
	c, err := f.conn.NewConsumer(within(t), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.admin().DeleteTopic(within(t), topic); err != nil {
		t.Fatal(err)
	}
	spec := driver.TopicSpec{Name: topic, Partitions: 2, Replicas: 1, Options: f.values(t, driver.OnTopic, nil)}
	if err := f.admin().CreateTopic(within(t), spec); err != nil {
		t.Fatal(err)
	}
	backlog := f.conn.(driver.Backlogger).Backlog
	if b, err := backlog(within(t), topic, topic); !errors.Is(err, errRecreated) {
		t.Errorf("a backlog of %+v, %v, want %v", b, err, errRecreated)
	}
	closed(t, c)
	again, err := f.conn.NewConsumer(within(t), config)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, again)
	f.send(t, f.producer(t, topic, nil), numbered("new", 5))
	if err := again.Settle(within(t), take(t, again, 5), driver.Ack); err != nil {
		t.Error(err)
	}
}
