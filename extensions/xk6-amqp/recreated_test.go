package amqp_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A stream that is deleted and created again is read from its first message, though it is shorter than the old one, or has its length.
func TestAStreamThatIsCreatedAgain(t *testing.T) {
	t.Parallel()
	for _, gap := range []bool{false, true} {
		for _, n := range []int{3, 10} {
			t.Run(fmt.Sprintf("gap %v, %d messages", gap, n), func(t *testing.T) {
				r := newRig(t, server(t, "rabbitmq-stream"))
				topic := r.topic(nil)
				p, c := r.producer(topic, 100, nil), r.consumer(topic, "", 100)
				r.kinds("", r.send(p, numbered("old", 10)...)...)
				r.take(c, 10)
				r.delete(topic)
				if gap {
					r.eventually("the consumer says that there is no topic", func() bool {
						ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
						defer cancel()
						_, err := c.Receive(ctx, make(driver.Batch, 1))
						return r.driver.KindOf(err) == driver.NotFound
					})
				}
				r.createAgain(topic)
				again := r.producer(topic, 100, nil)
				r.kinds("", r.send(again, numbered("new", n)...)...)
				for i, m := range r.survive(c, n) {
					if want := fmt.Sprintf("new %d", i); string(m.Body) != want {
						t.Errorf("%s, not %s", m.Body, want)
					}
				}
			})
		}
	}
}

// An exchange that is deleted and created again reaches its subscribers again.
func TestAnExchangeThatIsCreatedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq-pubsub"))
	topic := r.topic(nil)
	c := r.consumer(topic, "", 10)
	r.kinds("", r.send(r.producer(topic, 1, nil), text("old"))...)
	r.take(c, 1)
	r.delete(topic)
	r.create(topic, nil)
	p := r.producer(topic, 1, nil)
	r.eventually("a message comes", func() bool {
		r.kinds("", r.send(p, text("new"))...)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		n, _ := c.Receive(ctx, make(driver.Batch, 1))
		return n == 1
	})
}

// createAgain creates a stream that was deleted just now, which the server may not be done with.
func (r *rig) createAgain(name string) {
	r.Helper()
	values, err := r.address.Resolve(driver.OnTopic, nil)
	r.must(err)
	r.eventually("the stream is there again", func() bool {
		return r.conn.(driver.Admin).CreateTopic(r.context(), driver.TopicSpec{Name: name, Partitions: 1, Replicas: 1, Options: values}) == nil
	})
}

func numbered(name string, n int) []driver.Message {
	all := make([]driver.Message, n)
	for i := range all {
		all[i] = text(fmt.Sprintf("%s %d", name, i))
	}
	return all
}

// survive receives n messages of a consumer whose topic comes and goes.
func (r *rig) survive(c driver.Consumer, n int) driver.Batch {
	r.Helper()
	b, got := make(driver.Batch, n), 0
	r.eventually("all messages come", func() bool {
		ctx, cancel := context.WithTimeout(r.context(), time.Second)
		defer cancel()
		more, _ := c.Receive(ctx, b[got:])
		got += more
		return got == n
	})
	return b
}
