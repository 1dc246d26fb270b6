package amqp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// patience is how long a thing that must happen may take, on any machine.
const patience = 5 * time.Minute

// rig is a connection with the options of its URL, for tests that say what they want and fail where it is not to be had.
type rig struct {
	testing.TB
	conn    driver.Conn
	driver  *driver.Driver
	address *driver.Address
}

func newRig(tb testing.TB, url string) *rig {
	tb.Helper()
	if url == "" {
		tb.Skip("no URL for rabbitmq")
	}
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{TB: tb, driver: address.Driver, address: address}
	if r.conn, err = address.Open(r.context(), "test"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.must(r.conn.Close(r.context())) })
	return r
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.Cleanup(cancel)
	return ctx
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func unique() string { return fmt.Sprintf("test%012x", rand.Uint64()>>16) }

// topic creates a topic with options, and deletes it in the end.
func (r *rig) topic(options map[string]any) string {
	r.Helper()
	name := unique()
	r.create(name, options)
	return name
}

func (r *rig) create(name string, options map[string]any) {
	r.Helper()
	values, err := r.address.Resolve(driver.OnTopic, options)
	r.must(err)
	admin, _ := r.conn.(driver.Admin)
	r.must(admin.CreateTopic(r.context(), driver.TopicSpec{Name: name, Partitions: 1, Replicas: 1, Options: values}))
	r.Cleanup(func() { r.delete(name) })
}

func (r *rig) delete(name string) {
	admin, _ := r.conn.(driver.Admin)
	if err := admin.DeleteTopic(r.context(), name); err != nil && r.driver.KindOf(err) != driver.NotFound {
		r.Error(err)
	}
}

func (r *rig) producer(topic string, window int, options map[string]any) driver.Producer {
	r.Helper()
	values, err := r.address.Resolve(driver.OnProducer, options)
	r.must(err)
	p, err := r.conn.NewProducer(r.context(), driver.ProducerConfig{Topic: topic, Window: window, Options: values})
	r.must(err)
	r.Cleanup(func() { r.must(p.Close(r.context())) })
	return p
}

func (r *rig) consumer(topic, group string, prefetch int) driver.Consumer {
	r.Helper()
	values, err := r.address.Resolve(driver.OnConsumer, nil)
	r.must(err)
	start := driver.StartEarliest
	if !r.driver.Features.Start.Has(start) {
		start = driver.StartNew
	}
	c, err := r.conn.NewConsumer(r.context(), driver.ConsumerConfig{Topic: topic, Group: group, Prefetch: prefetch, Start: start, Options: values})
	r.must(err)
	r.Cleanup(func() { r.must(c.Close(r.context())) })
	return c
}

// send sends and waits; it gives one error, or nil, for each message.
func (r *rig) send(p driver.Producer, messages ...driver.Message) []error {
	r.Helper()
	errs := make([]error, len(messages))
	var outstanding sync.WaitGroup
	outstanding.Add(len(messages))
	p.Send(r.context(), messages, func(i int, err error) {
		errs[i] = err
		outstanding.Done()
	})
	outstanding.Wait()
	return errs
}

// take receives exactly n messages.
func (r *rig) take(c driver.Consumer, n int) driver.Batch {
	r.Helper()
	ctx := r.context()
	b := make(driver.Batch, n)
	for got := 0; got < n; {
		more, err := c.Receive(ctx, b[got:])
		r.must(err)
		got += more
	}
	return b
}

// kinds fails the test where an error is not of the kind wanted; "" wants no error.
func (r *rig) kinds(want driver.Kind, errs ...error) {
	r.Helper()
	for _, err := range errs {
		if got := kindOf(r.driver, err); got != want {
			r.Errorf("kind %q, want %q: %v", got, want, err)
		}
	}
}

func kindOf(d *driver.Driver, err error) driver.Kind {
	if err == nil {
		return ""
	}
	return d.KindOf(err)
}

// eventually polls a condition.
func (r *rig) eventually(what string, condition func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatalf("still not so: %s", what)
		}
	}
}

// channel is the client library's own, for what the contract has no word for.
func (r *rig) channel() *amqp091.Channel {
	r.Helper()
	var c *amqp091.Connection
	if u, ok := r.conn.(driver.Unwrapper); !ok || !u.As(&c) {
		r.Fatal("the connection does not lend an amqp091.Connection")
	}
	ch, err := c.Channel()
	r.must(err)
	r.Cleanup(func() { _ = ch.Close() })
	return ch
}

func text(s string) driver.Message { return driver.Message{Body: []byte(s)} }
