package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// patience limits the wait for a condition. A slow machine must not reach it.
const patience = 5 * time.Minute

func parse(t testing.TB, url string, options map[string]any) *driver.Address {
	t.Helper()
	a, err := driver.ParseURL(url, options)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// dial connects and closes in the end.
func dial(t testing.TB, url string) driver.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := parse(t, url, nil).Open(ctx, "xk6-redis test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func resolve(t testing.TB, url string, scope driver.Scope, options map[string]any) driver.Values {
	t.Helper()
	v, err := parse(t, url, nil).Resolve(scope, options)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func produce(t testing.TB, c driver.Conn, url, topic string, window int, options map[string]any) driver.Producer {
	t.Helper()
	p, err := c.NewProducer(t.Context(), driver.ProducerConfig{
		Topic: topic, Window: window, Options: resolve(t, url, driver.OnProducer, options),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, p) })
	return p
}

func consume(t testing.TB, c driver.Conn, url string, config driver.ConsumerConfig, options map[string]any) driver.Consumer {
	t.Helper()
	config.Options = resolve(t, url, driver.OnConsumer, options)
	r, err := c.NewConsumer(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, r) })
	return r
}

type closer interface {
	Close(ctx context.Context) error
}

func shut(t testing.TB, c closer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Logf("Close: %v", err) // where the server has gone
	}
}

// topic makes a topic, which is deleted at the end of the test.
func topic(t testing.TB, c driver.Conn) string {
	t.Helper()
	name := fmt.Sprintf("test-%d", time.Now().UnixNano())
	if a, ok := c.(driver.Admin); ok {
		if err := a.CreateTopic(t.Context(), driver.TopicSpec{Name: name, Partitions: 1, Replicas: 1}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.DeleteTopic(context.Background(), name) }) // a test may have killed the server
	}
	return name
}

// send sends bodies and returns what each Done said.
func send(t testing.TB, p driver.Producer, bodies ...string) []error {
	t.Helper()
	b := make(driver.Batch, len(bodies))
	for i := range b {
		b[i].Body = []byte(bodies[i])
	}
	return sendBatch(t, p, b)
}

func sendBatch(t testing.TB, p driver.Producer, b driver.Batch) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	type result struct {
		i   int
		err error
	}
	results := make(chan result, len(b))
	p.Send(ctx, b, func(i int, err error) { results <- result{i, err} })
	errs := make([]error, len(b))
	for range b {
		select {
		case r := <-results:
			errs[r.i] = r.err
		case <-ctx.Done():
			t.Fatal("a message was neither confirmed nor failed")
		}
	}
	return errs
}

// mustSend sends bodies, all of which must be confirmed.
func mustSend(t testing.TB, p driver.Producer, bodies ...string) {
	t.Helper()
	for i, err := range send(t, p, bodies...) {
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

// receive receives n messages.
func receive(t testing.TB, c driver.Consumer, n int) driver.Batch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := make(driver.Batch, n)
	for got := 0; got < n; {
		k, err := c.Receive(ctx, b[got:])
		if err != nil {
			t.Fatalf("Receive, after %d of %d: %v", got, n, err)
		}
		got += k
	}
	return b
}

// await polls until the condition holds.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after %v: %s", patience, what)
		}
	}
}

func kindOf(t testing.TB, scheme string, err error) driver.Kind {
	t.Helper()
	d, lookup := driver.Lookup(scheme)
	if lookup != nil {
		t.Fatal(lookup)
	}
	if err == nil {
		return ""
	}
	return d.KindOf(err)
}

func numbered(name string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%04d", name, i)
	}
	return all
}

func bodies(b driver.Batch) []string {
	all := make([]string, len(b))
	for i := range b {
		all[i] = string(b[i].Body)
	}
	return all
}

// group is a consumer of the group "g".
func group(t testing.TB, c driver.Conn, url, topic string, options map[string]any) driver.Consumer {
	t.Helper()
	return consume(t, c, url, driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 100, Start: driver.StartEarliest}, options)
}
