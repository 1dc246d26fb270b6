package amqp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A queue that is full and rejects answers with basic.nack.
func TestFullQueueRejects(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, server(t, "rabbitmq"))
			topic := r.topic(map[string]any{"queueType": kind, "maxLength": 5, "overflow": "reject-publish"})
			p := r.producer(topic, 1, nil)
			confirmed := 0
			for i := range 50 { // a quorum queue learns of its length with a delay, and takes a few more
				err := r.send(p, text(fmt.Sprint(i)))[0]
				if err == nil {
					confirmed++
					continue
				}
				r.kinds(driver.Rejected, err)
			}
			if confirmed < 5 || confirmed == 50 {
				t.Fatalf("%d of 50 messages were confirmed by a queue of 5", confirmed)
			}
			admin, _ := r.conn.(driver.Backlogger)
			backlog, err := admin.Backlog(r.context(), topic, "")
			r.must(err)
			if int(backlog.Messages) != confirmed {
				t.Errorf("%d messages are in the queue, %d were confirmed", backlog.Messages, confirmed)
			}
		})
	}
}

// What a queue of its kind would pass over is no option of it.
func TestOptionsOfAnotherKindOfQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	admin, _ := r.conn.(driver.Admin)
	for name, given := range map[string]map[string]any{
		"durable":       {"queueType": "quorum", "durable": false},
		"leaderLocator": {"leaderLocator": "balanced"},
	} {
		values, err := r.address.Resolve(driver.OnTopic, given)
		r.must(err)
		topic := unique()
		err = admin.CreateTopic(r.context(), driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: values})
		r.kinds(driver.Rejected, err)
		if option := (*driver.OptionError)(nil); !errors.As(err, &option) || option.Name != name {
			t.Errorf("%v: %v", given, err)
		}
		r.delete(topic)
	}
	for _, name := range []string{"messageTTL", "expires"} {
		if _, err := r.address.Resolve(driver.OnTopic, map[string]any{name: "500us"}); err == nil || !strings.Contains(err.Error(), "in steps of 1ms") {
			t.Errorf("%s of half a millisecond: %v", name, err)
		}
	}
	r.topic(map[string]any{"queueType": "quorum", "leaderLocator": "balanced"})
}

func TestRejectedGoToTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, server(t, "rabbitmq"))
			dead := unique()
			topic := r.topic(map[string]any{"queueType": kind, "deadLetterQueue": dead})
			t.Cleanup(func() { r.delete(dead) })
			p, c := r.producer(topic, 10, nil), r.consumer(topic, "", 10)
			r.kinds("", r.send(p, text("good"), text("bad"))...)
			b := r.take(c, 2)
			r.must(c.Settle(r.context(), b[:1], driver.Ack))
			r.must(c.Settle(r.context(), b[1:], driver.Reject))
			if got := r.take(r.consumer(dead, "", 10), 1); string(got[0].Body) != "bad" {
				t.Errorf("%q is in the dead letter queue", got[0].Body)
			}
		})
	}
}

// A quorum queue counts deliveries, and gives a message up at its limit.
func TestQuorumQueueCountsDeliveries(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	dead := unique()
	topic := r.topic(map[string]any{"queueType": "quorum", "deadLetterQueue": dead, "deliveryLimit": 3})
	t.Cleanup(func() { r.delete(dead) })
	p, c := r.producer(topic, 10, nil), r.consumer(topic, "", 10)
	r.kinds("", r.send(p, text("poison"))...)
	for attempt := range int32(4) {
		b := r.take(c, 1)
		if b[0].Attempt != attempt+1 {
			t.Errorf("attempt %d, want %d", b[0].Attempt, attempt+1)
		}
		r.must(c.Settle(r.context(), b, driver.Requeue))
	}
	if got := r.take(r.consumer(dead, "", 10), 1); string(got[0].Body) != "poison" || len(got[0].Headers) != 0 && got[0].Headers[0].Name == "x-delivery-count" {
		t.Errorf("%q with headers %v is in the dead letter queue", got[0].Body, got[0].Headers)
	}
}

// Settled in any order and in any parts, nothing is settled that was not asked for, and everything that was.
func TestSettledInAnyOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	topic := r.topic(nil)
	const n = 100
	p := r.producer(topic, n, nil)
	for i := range n {
		r.kinds("", r.send(p, text(fmt.Sprint(i)))...)
	}
	c := r.consumer(topic, "", n)
	b := r.take(c, n)
	var acked, rest driver.Batch
	for i := range b {
		if i%3 == 1 || i > 90 || i < 4 {
			acked = append(acked, b[i])
		} else {
			rest = append(rest, b[i])
		}
	}
	half := len(acked) / 2
	r.must(c.Settle(r.context(), acked[half:], driver.Ack)) // first those with gaps before them
	slices.Reverse(acked[:half])
	r.must(c.Settle(r.context(), acked[:half], driver.Ack))
	r.kinds(driver.Rejected, c.Settle(r.context(), acked[:1], driver.Ack))
	r.backlog(topic, int64(len(rest)))
	r.must(c.Close(r.context()))
	again := r.take(r.consumer(topic, "", n), len(rest))
	for i, m := range again {
		if string(m.Body) != string(rest[i].Body) || m.Attempt != 2 {
			t.Fatalf("message %d is %q, attempt %d; want %q, attempt 2", i, m.Body, m.Attempt, rest[i].Body)
		}
	}
	r.backlog(topic, int64(len(rest)))
}

// backlog waits until the backlog is what it should be, since settlements are not answered.
func (r *rig) backlog(topic string, want int64) {
	r.Helper()
	teller, _ := r.conn.(driver.Backlogger)
	r.eventually(fmt.Sprintf("the backlog is %d", want), func() bool {
		b, err := teller.Backlog(r.context(), topic, "")
		r.must(err)
		return b.Messages == want
	})
}

// A topic that exists with other properties is not the topic that was asked for.
func TestExistsWithOtherProperties(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	topic := r.topic(map[string]any{"queueType": "classic"})
	values, err := r.address.Resolve(driver.OnTopic, map[string]any{"queueType": "quorum"})
	r.must(err)
	admin, _ := r.conn.(driver.Admin)
	err = admin.CreateTopic(r.context(), driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: values})
	r.kinds(driver.Rejected, err)
}

func TestDurableProfileMakesQuorumQueues(t *testing.T) {
	address, err := driver.ParseURL("rabbitmq://127.0.0.1?profile=durable", nil)
	if err != nil {
		t.Fatal(err)
	}
	for profile, want := range map[string]string{"": "quorum", "latency": "classic", "throughput": "classic"} {
		given := map[string]any{"profile": profile}
		if profile == "" {
			given = nil
		}
		values, err := address.Resolve(driver.OnTopic, given)
		if err != nil || values.String("queueType") != want {
			t.Errorf("profile %q makes queues of type %q, want %q: %v", profile, values.String("queueType"), want, err)
		}
	}
}
