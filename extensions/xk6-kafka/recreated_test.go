package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Who has a topic open while it is deleted and created again goes on with the new one, and misses nothing of it.
func TestATopicThatIsCreatedAgain(t *testing.T) {
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
	defer func() { closed(t, c) }()
	f.send(t, p, numbered("before", 3))
	if err := c.Settle(within(t), take(t, c, 3), driver.Ack); err != nil {
		t.Fatal(err)
	}

	life, end := context.WithCancel(within(t))
	var busy sync.WaitGroup
	defer busy.Wait()
	defer end()
	came := make(chan string)
	busy.Go(func() {
		defer close(came)
		for b := make(driver.Batch, 10); life.Err() == nil; {
			brief, cancel := context.WithTimeout(life, 100*time.Millisecond)
			n, err := c.Receive(brief, b)
			cancel()
			if err != nil {
				continue // the topic that was is no more
			}
			for _, m := range b[:n] {
				select {
				case came <- string(m.Body):
				case <-life.Done():
				}
			}
			_ = c.Settle(life, b[:n], driver.Ack) // likewise
		}
	})
	if err := f.admin().DeleteTopic(within(t), topic); err != nil {
		t.Fatal(err)
	}
	for _, err := range sendAll(within(t), p, numbered("between", 3)) {
		if kind := classify(err); kind != driver.NotFound {
			t.Errorf("a topic that is not there: %v: %v", kind, err)
		}
	}
	spec := driver.TopicSpec{Name: topic, Partitions: 2, Replicas: 1, Options: f.values(t, driver.OnTopic, nil)}
	if err := f.admin().CreateTopic(within(t), spec); err != nil {
		t.Fatal(err)
	}

	missing, done := map[string]bool{}, false
	for i := 0; !done && life.Err() == nil; i++ {
		b := numbered(fmt.Sprint(i), 3)
		for j, err := range sendAll(life, p, b) {
			if err == nil {
				missing[string(b[j].Body)] = true
			}
		}
		for wait := time.After(20 * time.Millisecond); wait != nil; {
			select {
			case body := <-came:
				delete(missing, body)
			case <-wait:
				wait = nil
			}
		}
		done = done || i > 10 && len(missing) == 0
	}
	if !done {
		t.Errorf("%d confirmed messages have not come", len(missing))
	}
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
