package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// fixture is a connection to a real broker.
type fixture struct {
	address *driver.Address
	conn    driver.Conn
}

// patience is how long a thing that must happen may take, on any machine.
const patience = 5 * time.Minute

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func newFixture(t testing.TB, url string) *fixture {
	t.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := address.Open(within(t), "xk6-kafka-test")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{address, conn}
	t.Cleanup(func() { closed(t, conn) })
	return f
}

type closer interface {
	Close(ctx context.Context) error
}

func closed(t testing.TB, c closer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

func (f *fixture) values(t testing.TB, scope driver.Scope, given map[string]any) driver.Values {
	t.Helper()
	v, err := f.address.Resolve(scope, given)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (f *fixture) admin() driver.Admin { return f.conn.(driver.Admin) }

func newTopicName() string { return fmt.Sprintf("test-%012x", rand.Uint64()>>16) }

// topic makes a topic with a name of its own.
func (f *fixture) topic(t testing.TB, partitions int) string {
	t.Helper()
	name := newTopicName()
	spec := driver.TopicSpec{Name: name, Partitions: partitions, Replicas: 1, Options: f.values(t, driver.OnTopic, nil)}
	if err := f.admin().CreateTopic(within(t), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := f.admin().DeleteTopic(ctx, name); err != nil {
			t.Error(err)
		}
	})
	return name
}

func (f *fixture) producer(t testing.TB, topic string, given map[string]any) driver.Producer {
	t.Helper()
	p, err := f.conn.NewProducer(within(t), driver.ProducerConfig{
		Topic: topic, Window: 10_000, Options: f.values(t, driver.OnProducer, given),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, p) })
	return p
}

// consumer is closed by the test.
func (f *fixture) consumer(t testing.TB, topic, group string, change ...func(*driver.ConsumerConfig)) driver.Consumer {
	t.Helper()
	config := driver.ConsumerConfig{
		Topic: topic, Group: group, Prefetch: 100, Start: driver.StartNew, Options: f.values(t, driver.OnConsumer, nil),
	}
	for _, c := range change {
		c(&config)
	}
	c, err := f.conn.NewConsumer(within(t), config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends a batch and waits until all of it is confirmed.
func (f *fixture) send(t testing.TB, p driver.Producer, b driver.Batch) {
	t.Helper()
	for _, err := range sendAll(within(t), p, b) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func sendAll(ctx context.Context, p driver.Producer, b driver.Batch) []error {
	errs := make([]error, len(b))
	var wg sync.WaitGroup
	wg.Add(len(b))
	p.Send(ctx, b, func(i int, err error) { errs[i] = err; wg.Done() })
	wg.Wait()
	return errs
}

func numbered(name string, n int) driver.Batch {
	b := make(driver.Batch, n)
	for i := range b {
		b[i].Body = fmt.Appendf(nil, "%s-%03d", name, i)
	}
	return b
}

// take receives n messages.
func take(t testing.TB, c driver.Consumer, n int) driver.Batch {
	t.Helper()
	b, got := make(driver.Batch, n), 0
	for ctx := within(t); got < n; {
		m, err := c.Receive(ctx, b[got:])
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", got, n, err)
		}
		got += m
	}
	return b
}
