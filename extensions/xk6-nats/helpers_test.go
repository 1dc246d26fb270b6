package nats

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// patience limits the wait for a condition. A slow machine must not reach it.
const patience = 5 * time.Minute

// unique is a topic's name that no other test has.
func unique(prefix string) string { return fmt.Sprintf("%s.%012x", prefix, rand.Uint64()>>16) }

// within returns a context for a call that must return.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// dialURL opens a URL as the engine does, and returns the error.
func dialURL(t testing.TB, url string, given map[string]any) (driver.Conn, *driver.Address, error) {
	t.Helper()
	a, err := driver.ParseURL(url, given)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Open(within(t), "test")
	if err == nil {
		t.Cleanup(func() {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	return c, a, err
}

func open(t testing.TB, url string) (driver.Conn, *driver.Address) {
	t.Helper()
	c, a, err := dialURL(t, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, a
}

func values(t testing.TB, a *driver.Address, s driver.Scope, given map[string]any) driver.Values {
	t.Helper()
	return must[driver.Values](t)(a.Resolve(s, given))
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func client(t testing.TB, c driver.Conn) *nats.Conn {
	t.Helper()
	var nc *nats.Conn
	if u, ok := c.(driver.Unwrapper); !ok || !u.As(&nc) {
		t.Fatal("no *nats.Conn")
	}
	return nc
}

func create(t testing.TB, c driver.Conn, a *driver.Address, topic string, given map[string]any) {
	t.Helper()
	admin := c.(driver.Admin)
	spec := driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: values(t, a, driver.OnTopic, given)}
	if err := createTopic(within(t), admin, spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.DeleteTopic(context.Background(), topic); err != nil && a.Driver.KindOf(err) != driver.NotFound {
			t.Error(err)
		}
	})
}

func producer(t testing.TB, c driver.Conn, a *driver.Address, topic string, given map[string]any) driver.Producer {
	t.Helper()
	p := must[driver.Producer](t)(c.NewProducer(within(t), driver.ProducerConfig{
		Topic: topic, Window: 1000, Options: values(t, a, driver.OnProducer, given),
	}))
	t.Cleanup(func() { _ = p.Close(within(t)) })
	return p
}

func consumer(t testing.TB, c driver.Conn, a *driver.Address, config driver.ConsumerConfig, given map[string]any) driver.Consumer {
	t.Helper()
	config.Options = values(t, a, driver.OnConsumer, given)
	config.Prefetch = max(config.Prefetch, 1)
	config.Start = max(config.Start, driver.StartNew)
	k := must[driver.Consumer](t)(c.NewConsumer(within(t), config))
	t.Cleanup(func() { _ = k.Close(within(t)) })
	return k
}

// send sends and waits for every done; the errors are in the order of the batch.
func send(t testing.TB, p driver.Producer, b driver.Batch) []error {
	t.Helper()
	type outcome struct {
		i   int
		err error
	}
	outcomes, errs := make(chan outcome, len(b)), make([]error, len(b))
	p.Send(within(t), b, func(i int, err error) { outcomes <- outcome{i, err} })
	for range b {
		select {
		case o := <-outcomes:
			errs[o.i] = o.err
		case <-time.After(patience):
			t.Fatal("not every message is done")
		}
	}
	return errs
}

func bodies(n int) driver.Batch {
	b := make(driver.Batch, n)
	for i := range b {
		b[i].Body = fmt.Append(nil, i)
	}
	return b
}

// reconnected waits until there is a connection again.
func reconnected(t testing.TB, c driver.Conn) {
	t.Helper()
	for deadline := time.Now().Add(patience); !client(t, c).IsConnected(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection is not back")
		}
	}
}

// createTopic creates a topic, again while the server is still removing the files of the one of that name that was deleted just before.
func createTopic(ctx context.Context, admin driver.Admin, spec driver.TopicSpec) error {
	const storeFailed = 10049
	for {
		err := admin.CreateTopic(ctx, spec)
		if api := (*jetstream.APIError)(nil); !errors.As(err, &api) || api.ErrorCode != storeFailed {
			return err
		}
	}
}
