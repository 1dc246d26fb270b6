package pulsar

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

// fixture is a connection to a real broker.
type fixture struct {
	testing.TB
	address *driver.Address
	conn    *conn
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// newFixture connects to the server of an environment's variable, or skips the test.
func newFixture(t testing.TB, variable string) *fixture {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		t.Skipf("no %s", variable)
	}
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := address.Open(within(t), "xk6-pulsar-test")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, address, c.(*conn)}
	f.closes(c)
	return f
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

// topic makes a topic of its own.
func (f *fixture) topic(partitions int) string {
	f.Helper()
	name := fmt.Sprintf("test-%012x", rand.Uint64()>>16)
	f.create(name, partitions)
	f.Cleanup(func() {
		if err := f.conn.DeleteTopic(within(f), name); err != nil {
			f.Error(err)
		}
	})
	return name
}

func (f *fixture) create(name string, partitions int) {
	f.Helper()
	spec := driver.TopicSpec{Name: name, Partitions: partitions, Replicas: 1, Options: f.values(driver.OnTopic, nil)}
	if err := f.conn.CreateTopic(within(f), spec); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) producer(topic string, given map[string]any) driver.Producer {
	f.Helper()
	p, err := f.conn.NewProducer(within(f), driver.ProducerConfig{Topic: topic, Window: 10_000, Options: f.values(driver.OnProducer, given)})
	if err != nil {
		f.Fatal(err)
	}
	f.closes(p)
	return p
}

func (f *fixture) consumer(topic, group string, given map[string]any) driver.Consumer {
	f.Helper()
	c, err := f.conn.NewConsumer(within(f), driver.ConsumerConfig{
		Topic: topic, Group: group, Prefetch: 100, Start: driver.StartEarliest, Options: f.values(driver.OnConsumer, given),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.closes(c)
	return c
}

// try sends a batch and waits for the fate of each message.
func try(ctx context.Context, p driver.Producer, b driver.Batch) []error {
	errs := make([]error, len(b))
	var all sync.WaitGroup
	all.Add(len(b))
	p.Send(ctx, b, func(i int, err error) { errs[i] = err; all.Done() })
	all.Wait()
	return errs
}

func (f *fixture) send(p driver.Producer, b driver.Batch) {
	f.Helper()
	for _, err := range try(within(f), p, b) {
		if err != nil {
			f.Fatal(err)
		}
	}
}

func numbered(n int) driver.Batch {
	b := make(driver.Batch, n)
	for i := range b {
		b[i].Body = fmt.Appendf(nil, "%05d", i)
	}
	return b
}

// take receives n messages.
func (f *fixture) take(c driver.Consumer, n int) driver.Batch {
	f.Helper()
	b, got := make(driver.Batch, n), 0
	for ctx := within(f); got < n; {
		m, err := c.Receive(ctx, b[got:])
		if err != nil {
			f.Fatalf("after %d of %d messages: %v", got, n, err)
		}
		got += m
	}
	return b
}
