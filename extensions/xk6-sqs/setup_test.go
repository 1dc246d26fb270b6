package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// patience is how long a thing that must happen may take, on any machine.
const patience = 5 * time.Minute

func serverURL(t *testing.T, variable string) string {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		t.Skip("no " + variable)
	}
	return url
}

// standard and fifo connect, with options for all that is made over the connection.
func standard(t *testing.T, options map[string]any) server {
	t.Helper()
	return dial(t, serverURL(t, "BROKER_URL_SQS"), options)
}

func fifo(t *testing.T, options map[string]any) server {
	t.Helper()
	return dial(t, serverURL(t, "BROKER_URL_SQS_FIFO"), options)
}

// address is the URL with options of any scope.
func address(t *testing.T, url string, options map[string]any) *driver.Address {
	t.Helper()
	a, err := driver.ParseURL(url, options)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func values(t *testing.T, a *driver.Address, scope driver.Scope) driver.Values {
	t.Helper()
	v, err := a.Resolve(scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// server is a connection with options for all that is made over it.
type server struct {
	driver.Conn
	a *driver.Address
}

func dial(t *testing.T, url string, options map[string]any) server {
	t.Helper()
	a := address(t, url, options)
	c, err := a.Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	closing(t, c)
	return server{c, a}
}

type closer interface {
	Close(ctx context.Context) error
}

func closing(t *testing.T, x closer) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := x.Close(ctx); err != nil && !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
}

// name is one that no other test has.
func name(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%.30s-%d", strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), time.Now().UnixNano())
}

func (s server) create(t *testing.T, topic string) {
	t.Helper()
	spec := driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: values(t, s.a, driver.OnTopic)}
	if err := s.Conn.(driver.Admin).CreateTopic(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func (s server) remove(t *testing.T, topic string) {
	t.Helper()
	if err := s.Conn.(driver.Admin).DeleteTopic(context.Background(), topic); err != nil {
		t.Error(err)
	}
}

// topic is a new one, which is deleted in the end.
func (s server) topic(t *testing.T) string {
	t.Helper()
	topic := name(t)
	s.create(t, topic)
	t.Cleanup(func() { s.remove(t, topic) })
	return topic
}

func (s server) produce(t *testing.T, topic string) driver.Producer {
	t.Helper()
	p, err := s.NewProducer(t.Context(), driver.ProducerConfig{Topic: topic, Window: 1000, Options: values(t, s.a, driver.OnProducer)})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
	return p
}

func (s server) consume(t *testing.T, topic string) driver.Consumer {
	t.Helper()
	return s.consumeUpTo(t, topic, 10)
}

func (s server) consumeUpTo(t *testing.T, topic string, prefetch int) driver.Consumer {
	t.Helper()
	r, err := s.NewConsumer(t.Context(), driver.ConsumerConfig{
		Topic: topic, Prefetch: prefetch, Start: driver.StartEarliest, Options: values(t, s.a, driver.OnConsumer),
	})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, r)
	return r
}

func (s server) backlog(t *testing.T, topic string) driver.Backlog {
	t.Helper()
	b, err := s.Conn.(driver.Backlogger).Backlog(t.Context(), topic, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sendAll sends and gives the error of each message.
func sendAll(t *testing.T, p driver.Producer, b driver.Batch) []error {
	t.Helper()
	errs := make([]error, len(b))
	var done sync.WaitGroup
	done.Add(len(b))
	p.Send(t.Context(), b, func(i int, err error) { errs[i] = err; done.Done() })
	all := make(chan struct{})
	go func() { done.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(patience):
		t.Fatal("done was not called for every message")
	}
	return errs
}

func send(t *testing.T, p driver.Producer, bodies ...string) []error {
	t.Helper()
	b := make(driver.Batch, len(bodies))
	for i := range b {
		b[i].Body = []byte(bodies[i])
	}
	return sendAll(t, p, b)
}

func mustSend(t *testing.T, p driver.Producer, bodies ...string) {
	t.Helper()
	if err := errors.Join(send(t, p, bodies...)...); err != nil {
		t.Fatal(err)
	}
}

// receive waits for so many messages.
func receive(t *testing.T, r driver.Consumer, n int) driver.Batch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got driver.Batch
	for len(got) < n {
		b := make(driver.Batch, n-len(got))
		some, err := r.Receive(ctx, b)
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", len(got), n, err)
		}
		got = append(got, b[:some]...)
	}
	return got
}

func settle(t *testing.T, r driver.Consumer, b driver.Batch, o driver.Outcome) {
	t.Helper()
	if err := r.Settle(t.Context(), b, o); err != nil {
		t.Fatal(err)
	}
}

func kindOf(t *testing.T, err error) driver.Kind {
	t.Helper()
	d, unknown := driver.Lookup("sqs")
	if unknown != nil {
		t.Fatal(unknown)
	}
	return d.KindOf(err)
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to be that %s", what)
		}
	}
}
