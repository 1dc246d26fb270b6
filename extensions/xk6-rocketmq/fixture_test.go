package rocketmq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// patience is how long a thing that must happen may take, on any machine.
const patience = 5 * time.Minute

// fixture is a connection to a real server, and a topic of its own.
type fixture struct {
	testing.TB
	address *driver.Address
	conn    *conn
	topic   string
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// serverURL is the server's, whose consumers wait for messages no longer than it lets them.
func serverURL(t testing.TB) string {
	t.Helper()
	url := os.Getenv("BROKER_URL_ROCKETMQ")
	if url == "" {
		t.Skip("no BROKER_URL_ROCKETMQ")
	}
	return url + "&pollTime=300ms"
}

// newFixture makes a topic of a type.
func newFixture(t testing.TB, messageType string, partitions int) *fixture {
	t.Helper()
	address, err := driver.ParseURL(serverURL(t), map[string]any{"messageType": messageType})
	if err != nil {
		t.Fatal(err)
	}
	c, err := address.Open(within(t), "xk6-rocketmq-test")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, address, c.(*conn), fmt.Sprintf("test-%012x", rand.Uint64()>>16)}
	f.closes(c)
	f.create(partitions)
	t.Cleanup(func() {
		if err := f.conn.DeleteTopic(within(f), f.topic); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) create(partitions int) {
	f.Helper()
	spec := driver.TopicSpec{Name: f.topic, Partitions: partitions, Replicas: 1, Options: f.values(driver.OnTopic, nil)}
	if err := f.conn.CreateTopic(within(f), spec); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) closes(c interface{ Close(context.Context) error }) {
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			f.Error(err)
		}
	})
}

func (f *fixture) values(scope driver.Scope, given map[string]any) driver.Values {
	f.Helper()
	v, err := f.address.Resolve(scope, given)
	if err != nil {
		f.Fatal(err)
	}
	return v
}

func (f *fixture) producer(given map[string]any) driver.Producer {
	f.Helper()
	p, err := f.conn.NewProducer(within(f), driver.ProducerConfig{Topic: f.topic, Window: 10_000, Options: f.values(driver.OnProducer, given)})
	if err != nil {
		f.Fatal(err)
	}
	f.closes(p)
	return p
}

func (f *fixture) tryConsumer(group string, prefetch int, given map[string]any) (driver.Consumer, error) {
	f.Helper()
	return f.conn.NewConsumer(within(f), driver.ConsumerConfig{
		Topic: f.topic, Group: f.topic + "-" + group, Prefetch: prefetch, Start: driver.StartEarliest, Options: f.values(driver.OnConsumer, given),
	})
}

func (f *fixture) consumer(group string, given map[string]any) driver.Consumer {
	f.Helper()
	c, err := f.tryConsumer(group, 100, given)
	if err != nil {
		f.Fatal(err)
	}
	f.closes(c)
	return c
}

// try sends a batch and waits for the fate of each message.
func (f *fixture) try(p driver.Producer, b driver.Batch) []error {
	errs := make([]error, len(b))
	var all sync.WaitGroup
	all.Add(len(b))
	p.Send(within(f), b, func(i int, err error) { errs[i] = err; all.Done() })
	all.Wait()
	return errs
}

func (f *fixture) send(p driver.Producer, b driver.Batch) {
	f.Helper()
	for _, err := range f.try(p, b) {
		if err != nil {
			f.Fatal(err)
		}
	}
}

// refused sends one message, which must fail with an error of a kind.
func (f *fixture) refused(p driver.Producer, m driver.Message, want driver.Kind) {
	f.Helper()
	if err := f.try(p, driver.Batch{m})[0]; err == nil || f.address.Driver.KindOf(err) != want {
		f.Errorf("%v, want an error of kind %s", err, want)
	}
}

// take receives n messages, and acknowledges them where told to.
func (f *fixture) take(c driver.Consumer, n int, ack bool) (got driver.Batch) {
	f.Helper()
	for ctx := within(f); len(got) < n; {
		b := make(driver.Batch, n-len(got))
		m, err := c.Receive(ctx, b)
		if err != nil {
			f.Fatalf("after %d of %d messages: %v", len(got), n, err)
		}
		if ack {
			f.settle(c, b[:m], driver.Ack)
		}
		got = append(got, b[:m]...)
	}
	return got
}

func (f *fixture) settle(c driver.Consumer, b driver.Batch, o driver.Outcome) {
	f.Helper()
	if err := c.Settle(within(f), b, o); err != nil {
		f.Fatal(err)
	}
}

// end is how many messages were ever put into the first queue of a topic of the test's first broker; 0 of one that is not there.
func (f *fixture) end(topic string) int64 {
	f.Helper()
	parts, err := f.conn.admin.parts(within(f), f.topic)
	if err != nil {
		f.Fatal(err)
	}
	n, err := f.conn.admin.offset(within(f), parts[0].set, maxOffset, position(topic, "", 0))
	if err != nil {
		f.Fatal(err)
	}
	return n
}
