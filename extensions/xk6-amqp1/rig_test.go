package amqp1_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

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

// newRig is for a driver at the Artemis of scripts/broker.
func newRig(tb testing.TB, variable string) *rig {
	tb.Helper()
	url := os.Getenv(variable)
	if url == "" {
		tb.Skip("no " + variable)
	}
	return rigAt(tb, url)
}

func rigAt(tb testing.TB, url string) *rig {
	tb.Helper()
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

func (r *rig) values(scope driver.Scope, options map[string]any) driver.Values {
	r.Helper()
	values, err := r.address.Resolve(scope, options)
	r.must(err)
	return values
}

func (r *rig) admin() driver.Admin { return r.conn.(driver.Admin) }

// topic makes a topic, and deletes it in the end.
func (r *rig) topic() string {
	r.Helper()
	name := fmt.Sprintf("test%012x", rand.Uint64()>>16)
	r.must(r.create(name, nil))
	r.Cleanup(func() {
		if err := r.admin().DeleteTopic(r.context(), name); err != nil && r.driver.KindOf(err) != driver.NotFound {
			r.Error(err)
		}
	})
	return name
}

func (r *rig) create(name string, options map[string]any) error {
	spec := driver.TopicSpec{Name: name, Partitions: 1, Replicas: 1, Options: r.values(driver.OnTopic, options)}
	return r.admin().CreateTopic(r.context(), spec)
}

func (r *rig) producer(topic string, options map[string]any) driver.Producer {
	r.Helper()
	p, err := r.conn.NewProducer(r.context(), driver.ProducerConfig{Topic: topic, Window: 100, Options: r.values(driver.OnProducer, options)})
	r.must(err)
	r.Cleanup(func() { r.must(p.Close(r.context())) })
	return p
}

func (r *rig) tryConsumer(topic, group string, prefetch int, options map[string]any) (driver.Consumer, error) {
	start := driver.StartEarliest
	if !r.driver.Features.Start.Has(start) {
		start = driver.StartNew
	}
	c, err := r.conn.NewConsumer(r.context(), driver.ConsumerConfig{
		Topic: topic, Group: group, Prefetch: prefetch, Start: start, Options: r.values(driver.OnConsumer, options),
	})
	if err == nil {
		r.Cleanup(func() { r.must(c.Close(r.context())) })
	}
	return c, err
}

func (r *rig) consumer(topic, group string, options map[string]any) driver.Consumer {
	r.Helper()
	c, err := r.tryConsumer(topic, group, 100, options)
	r.must(err)
	return c
}

// send sends and waits, and fails where a message is not confirmed.
func (r *rig) send(p driver.Producer, messages ...driver.Message) {
	r.Helper()
	r.must(errors.Join(r.try(p, messages...)...))
}

// try sends and waits; it gives one error, or nil, for each message.
func (r *rig) try(p driver.Producer, messages ...driver.Message) []error {
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
		if err != nil {
			r.Fatalf("after %d of %d messages: %v", got, n, err)
		}
		got += more
	}
	return b
}

// nothing fails where a message comes soon.
func (r *rig) nothing(c driver.Consumer) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	b := make(driver.Batch, 1)
	if n, err := c.Receive(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
		r.Errorf("%d messages came, %q: %v", n, b[0].Body, err)
	}
}

func (r *rig) settle(c driver.Consumer, b driver.Batch, o driver.Outcome) {
	r.Helper()
	r.must(c.Settle(r.context(), b, o))
}

func (r *rig) kind(err error, want driver.Kind) {
	r.Helper()
	if got := r.driver.KindOf(err); err == nil || got != want {
		r.Errorf("kind %q, want %q: %v", got, want, err)
	}
}

func text(s string) driver.Message { return driver.Message{Body: []byte(s)} }

func bodies(b driver.Batch) (all []string) {
	for _, m := range b {
		all = append(all, string(m.Body))
	}
	return all
}

func (r *rig) same(got driver.Batch, want ...string) {
	r.Helper()
	if !slices.Equal(bodies(got), want) {
		r.Errorf("%q came, want %q", bodies(got), want)
	}
}
