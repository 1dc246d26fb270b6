package amqp1_test

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Two members of a group over one connection share its messages, a second group and a consumer without one get all, and what is sent while nobody of the
// group is there waits for it.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1_PUBSUB")
	topic := r.topic()
	one, two := r.consumer(topic, "shared", nil), r.consumer(topic, "shared", nil)
	other, alone := r.consumer(topic, "other", nil), r.consumer(topic, "", nil)
	p := r.producer(topic, nil)
	r.send(p, text("a"), text("b"))
	for _, c := range []driver.Consumer{one, two} {
		b := r.take(c, 1)
		r.settle(c, b, driver.Ack)
		r.nothing(c)
	}
	for _, c := range []driver.Consumer{other, alone} {
		b := r.take(c, 2)
		r.same(b, "a", "b")
		r.settle(c, b, driver.Ack)
	}
	for _, c := range []driver.Consumer{one, two, other} {
		r.must(c.Close(r.context()))
	}
	r.send(p, text("c"))
	again := r.consumer(topic, "shared", nil)
	b := r.take(again, 1)
	r.same(b, "c")
	r.settle(again, b, driver.Ack)
	backlog, err := r.conn.(driver.Backlogger).Backlog(r.context(), topic, "other")
	r.must(err)
	if backlog.Messages != 1 {
		t.Errorf("a group that nobody is there of has a backlog of %d, want 1", backlog.Messages)
	}
}

// A subscription that others have made is found by its address.
func TestGroupAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1_PUBSUB")
	topic := r.topic()
	r.must(r.consumer(topic, "made", nil).Close(r.context()))
	r.send(r.producer(topic, nil), text("there"))
	c := r.consumer(topic, "made", map[string]any{"groupAddress": "{topic}::{topic}.{group}:global"})
	b := r.take(c, 1)
	r.same(b, "there")
	r.settle(c, b, driver.Ack)
}
