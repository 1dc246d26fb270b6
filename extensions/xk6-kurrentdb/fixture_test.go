package kurrentdb

import (
	"context"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

// patience limits the wait for a condition. A slow machine must not reach it.
const patience = 5 * time.Minute

// fixture is a double with a way to it.
type fixture struct {
	t      testing.TB
	server *double.Server
	url    string
}

func start(t testing.TB, c double.Config) *fixture {
	t.Helper()
	s, err := double.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return &fixture{t, s, "kurrentdb://" + s.Addr()}
}

func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	f.t.Cleanup(cancel)
	return ctx
}

// try opens a URL.
func (f *fixture) try(url string) (driver.Conn, error) {
	f.t.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return address.Open(f.context(), "test")
}

func (f *fixture) open() *conn {
	f.t.Helper()
	c, err := f.try(f.url)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c.(*conn)
}

func (f *fixture) resolve(scope driver.Scope, given map[string]any) driver.Values {
	f.t.Helper()
	d, err := driver.Lookup("kurrentdb")
	if err != nil {
		f.t.Fatal(err)
	}
	values, err := d.Resolve(scope, driver.Latency, given)
	if err != nil {
		f.t.Fatal(err)
	}
	return values
}

// topic makes a topic.
func (f *fixture) topic(c *conn, name string) {
	f.t.Helper()
	if err := c.CreateTopic(f.context(), driver.TopicSpec{Name: name, Partitions: 1, Replicas: 1, Options: f.resolve(driver.OnTopic, nil)}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) producer(c *conn, topic string, given map[string]any) driver.Producer {
	f.t.Helper()
	p, err := c.NewProducer(f.context(), driver.ProducerConfig{Topic: topic, Window: 1000, Options: f.resolve(driver.OnProducer, given)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// send sends, and gives the error of each message.
func (f *fixture) send(p driver.Producer, b driver.Batch) []error {
	f.t.Helper()
	type fate struct {
		i   int
		err error
	}
	fates, errs := make(chan fate, len(b)), make([]error, len(b))
	p.Send(f.context(), b, func(i int, err error) { fates <- fate{i, err} })
	for range b {
		select {
		case one := <-fates:
			errs[one.i] = one.err
		case <-f.context().Done():
			f.t.Fatal("a message without a fate")
		}
	}
	return errs
}

func (f *fixture) consumer(c *conn, topic, group string, given map[string]any) driver.Consumer {
	f.t.Helper()
	r, err := c.NewConsumer(f.context(), driver.ConsumerConfig{
		Topic: topic, Group: group, Prefetch: 100, Start: driver.StartEarliest, Options: f.resolve(driver.OnConsumer, given),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// receive receives so many.
func (f *fixture) receive(r driver.Consumer, n int) (all driver.Batch) {
	f.t.Helper()
	for ctx := f.context(); len(all) < n; {
		b := make(driver.Batch, n-len(all))
		got, err := r.Receive(ctx, b)
		if err != nil {
			f.t.Fatalf("after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, b[:got]...)
	}
	return all
}

// kind is that of an error.
func (f *fixture) kind(err error) driver.Kind {
	f.t.Helper()
	d, lookup := driver.Lookup("kurrentdb")
	if lookup != nil {
		f.t.Fatal(lookup)
	}
	return d.KindOf(err)
}

func bodies(of ...string) (b driver.Batch) {
	for _, body := range of {
		b = append(b, driver.Message{Body: []byte(body)})
	}
	return b
}
