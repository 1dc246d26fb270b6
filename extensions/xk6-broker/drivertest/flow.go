package drivertest

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// flow is one topic of a test, with a connection, a consumer of the usual group and a producer.
type flow struct {
	kit   *kit
	conn  driver.Conn
	topic string
	r     *receiver
	p     *sender
}

// flow makes a flow with a topic of one partition.
func (k *kit) flow() *flow { return k.flowAt(k.URL, 1) }

// flowAt makes a flow whose connection leads through a URL. The topic is made directly.
func (k *kit) flowAt(url string, partitions int) *flow {
	c := k.openAt(url)
	admin := c
	if url != k.URL {
		admin = k.open()
	}
	topic := k.topic(admin, partitions)
	return &flow{kit: k, conn: c, topic: topic, r: k.consumer(c, topic), p: k.producer(c, topic)}
}

// settling makes a flow if the driver claims an outcome.
func (k *kit) settling(o driver.Outcome) *flow {
	k.claims(k.f.Settle.Has(o), o.String())
	return k.flow()
}

// consuming makes a flow if the driver has consumers.
func (k *kit) consuming() *flow {
	k.claims(!k.onlySends(), "consumers")
	return k.flow()
}

// lone makes a producer on a connection that leads through a URL. Its topic is made directly.
func (k *kit) lone(url string) *sender { return k.producer(k.openAt(url), k.topic(k.open(), 1)) }

// send sends n messages, which must succeed.
func (f *flow) send(name string, n int) driver.Batch {
	f.kit.Helper()
	b := f.kit.messages(name, n)
	f.p.send(b)
	return b
}

// reopen closes the consumer and makes another one of the same group.
func (f *flow) reopen() *receiver {
	f.kit.close(f.r)
	return f.kit.consumer(f.conn, f.topic)
}

// gone fails the test if a message of the topic comes to the group once more, now or when its
// consumer comes back. A slow broker that confirms no settlement gets as much time again.
func (f *flow) gone() {
	f.kit.Helper()
	f.r.nothing(max(quiet(), min(time.Since(f.r.opened), f.kit.Timeout)))
	f.backlog(f.conn, 0)
	if f.kit.shared() {
		f.reopen().nothing(quiet())
	}
}

// backlog waits until the group's backlog is n, if the broker reports one.
func (f *flow) backlog(c driver.Conn, n int64) {
	f.kit.Helper()
	backlogger, ok := c.(driver.Backlogger)
	if !ok || !f.kit.shared() {
		return
	}
	var last driver.Backlog
	reached := f.kit.eventually(func() bool {
		var err error
		last, err = backlogger.Backlog(f.kit.Context(), f.topic, f.kit.usual(f.topic).Group)
		if err != nil {
			f.kit.Fatalf("Backlog: %v", err)
		}
		return last.Messages == n
	})
	if !reached {
		f.kit.Errorf("the backlog stays at %d, want %d", last.Messages, n)
	}
}
