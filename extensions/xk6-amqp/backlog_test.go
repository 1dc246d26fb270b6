package amqp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// asked is what a connection says of a group at once.
func (r *rig) asked(topic, group string) int64 {
	r.Helper()
	b, err := r.conn.(driver.Backlogger).Backlog(r.context(), topic, group)
	r.must(err)
	return b.Messages
}

// fill sends n messages, all at a time, and waits until the broker has them.
func (r *rig) fill(topic string, n int) {
	r.Helper()
	r.kinds("", r.send(r.producer(topic, n, nil), make(driver.Batch, n)...)...)
}

// kinds of queues with a backlog, by the scheme and the options of their URL.
func eachQueue(t *testing.T, test func(t *testing.T, url, group string)) {
	t.Helper()
	for _, scheme := range []string{"rabbitmq", "rabbitmq-pubsub"} {
		for _, kind := range []string{"classic", "quorum"} {
			group := map[string]string{"rabbitmq-pubsub": "g"}[scheme]
			t.Run(scheme+" "+kind, func(t *testing.T) { test(t, server(t, scheme, "queueType", kind), group) })
		}
	}
}

// What consumers hold on other connections of the process counts, whichever connection is asked.
func TestBacklogIsOfAllConnections(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, url, group string) {
		rigs := make([]*rig, 4)
		for i := range rigs {
			rigs[i] = newRig(t, url)
		}
		topic := rigs[0].topic(nil)
		const each = 25
		consumers := make([]driver.Consumer, len(rigs))
		for i, r := range rigs {
			consumers[i] = r.consumer(topic, group, each)
		}
		rigs[0].fill(topic, each*len(rigs)+7)
		held := make([]driver.Batch, len(rigs))
		for i, r := range rigs {
			held[i] = r.take(consumers[i], each)
		}
		left := int64(each*len(rigs) + 7)
		for i, r := range rigs {
			if got := r.asked(topic, group); got != left {
				t.Fatalf("connection %d says %d, want %d", i, got, left)
			}
			r.must(consumers[i].Settle(r.context(), held[i][:20], driver.Ack))
			left -= 20
		}
		if got := rigs[0].asked(topic, group); got != left {
			t.Errorf("a backlog of %d after all but 5 of each consumer are settled, want %d", got, left)
		}
		rigs[1].must(consumers[1].Close(rigs[1].context()))
		rigs[2].eventually("what a consumer held is back", func() bool { return rigs[2].asked(topic, group) == left })
	})
}

// What the broker has sent and the consumer has not seen yet is in neither count of a moment.
func TestBacklogHasWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, url, group string) {
		r := newRig(t, url)
		topic := r.topic(nil)
		const all, prefetch = 1500, 500
		c := r.consumer(topic, group, prefetch)
		r.fill(topic, all)
		for left := int64(all); left > 0; left -= prefetch {
			if got := r.asked(topic, group); got != left {
				t.Fatalf("a backlog of %d, want %d", got, left)
			}
			r.must(c.Settle(r.context(), r.take(c, prefetch), driver.Ack))
		}
		if got := r.asked(topic, group); got != 0 {
			t.Errorf("a backlog of %d after all is settled", got)
		}
	})
}

// Subscribers have queues of their own, which only their own connections may ask for.
func TestBacklogOfSubscribersIsOfAllConnections(t *testing.T) {
	t.Parallel()
	url := server(t, "rabbitmq-pubsub")
	one, other := newRig(t, url), newRig(t, url)
	topic := one.topic(nil)
	a, b := one.consumer(topic, "", 10), other.consumer(topic, "", 10)
	one.fill(topic, 30)
	one.take(a, 10)
	other.must(b.Settle(other.context(), other.take(b, 10), driver.Ack))
	for _, r := range []*rig{one, other} {
		if got := r.asked(topic, ""); got != 50 {
			t.Errorf("a backlog of %d, want 50: 30 of one and 20 of the other", got)
		}
	}
}

// What consumers of another group hold is not the group's.
func TestBacklogIsOfOneQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq-pubsub"))
	topic := r.topic(nil)
	a, b := r.consumer(topic, "a", 10), r.consumer(topic, "b", 10)
	r.fill(topic, 10)
	r.take(a, 10)
	r.must(b.Settle(r.context(), r.take(b, 10), driver.Ack))
	for group, want := range map[string]int64{"a": 10, "b": 0} {
		if got := r.asked(topic, group); got != want {
			t.Errorf("group %s: a backlog of %d, want %d", group, got, want)
		}
	}
}

// A stream has no backlog: its consumers have no place at the broker.
func TestStreamsTellNoBacklog(t *testing.T) {
	r := newRig(t, server(t, "rabbitmq-stream"))
	if _, ok := r.conn.(driver.Backlogger); ok {
		t.Error("a connection to streams tells a backlog")
	}
}

// To be asked beside closing harms neither.
func TestBacklogBesideClosing(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	topic := r.topic(nil)
	r.fill(topic, 100)
	ctx, stop := context.WithCancel(r.context())
	defer stop()
	var asked error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for asked == nil && ctx.Err() == nil {
			_, asked = r.conn.(driver.Backlogger).Backlog(ctx, topic, "")
		}
	}()
	for range 30 {
		c := r.consumer(topic, "", 50)
		r.take(c, 20)
		r.must(c.Close(r.context()))
	}
	stop()
	<-done
	if asked != nil && !errors.Is(asked, context.Canceled) {
		t.Error(asked)
	}
	if got := r.asked(topic, ""); got != 100 {
		t.Errorf("a backlog of %d, want 100", got)
	}
}

// What consumers outside of the process hold the broker does not tell, but that they are there.
func TestBacklogBesideStrangersIsAnEstimate(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, url, group string) {
		r := newRig(t, url)
		topic := r.topic(nil)
		r.consumer(topic, group, 5)
		queue := topic
		if group != "" {
			queue += "." + group
		}
		said := func() driver.Backlog {
			b, err := r.conn.(driver.Backlogger).Backlog(r.context(), topic, group)
			r.must(err)
			return b
		}
		if said().Estimate {
			t.Error("an estimate with no consumer but our own")
		}
		strange := r.channel()
		r.must(strange.Qos(10, 0, false))
		_, err := strange.Consume(queue, "stranger", false, false, false, false, nil)
		r.must(err)
		if !said().Estimate {
			t.Error("exact beside a stranger")
		}
		r.must(strange.Cancel("stranger", false))
		r.eventually("it is exact without the stranger", func() bool { return !said().Estimate })
	})
}
