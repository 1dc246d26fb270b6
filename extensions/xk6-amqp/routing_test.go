package amqp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// What no queue takes is confirmed by RabbitMQ and nevertheless gone.
func TestUnroutableIsNotFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	p := r.producer(unique(), 10, nil)
	r.kinds(driver.NotFound, r.send(p, text("one"), text("two"))...)
	careless := r.producer(unique(), 10, map[string]any{"mandatory": false})
	r.kinds("", r.send(careless, text("one"))...)
}

// The binding goes away while messages are in flight: those that failed and those in the queue must be all, and none both.
func TestUnroutableAreToldApart(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	exchange := unique()
	topic := r.topic(map[string]any{"exchange": exchange})
	ch := r.channel()
	t.Cleanup(func() { r.must(ch.ExchangeDelete(exchange, false, false)) })
	const total, cut = 6000, 2000
	p := r.producer(topic, total, map[string]any{"exchange": exchange})
	var failed [total]bool
	first := make(chan struct{}) // the first message has its answer, so that one at least went well
	var outstanding sync.WaitGroup
	var unbound sync.WaitGroup
	outstanding.Add(total)
	for i := range total {
		if i == cut {
			<-first
			unbound.Go(func() { r.must(ch.QueueUnbind(topic, topic, exchange, nil)) })
		}
		if i == 2*cut {
			unbound.Wait() // by now at the latest messages go nowhere
		}
		p.Send(r.context(), driver.Batch{text(fmt.Sprint(i))}, func(_ int, err error) {
			if err != nil {
				r.kinds(driver.NotFound, err)
			}
			failed[i] = err != nil
			if i == 0 {
				close(first)
			}
			outstanding.Done()
		})
	}
	outstanding.Wait()
	arrived := 0
	for _, f := range failed {
		if !f {
			arrived++
		}
	}
	if arrived == total || arrived == 0 {
		t.Fatalf("%d of %d messages were confirmed, and the binding went in between", arrived, total)
	}
	for _, m := range r.take(r.consumer(topic, "", total), arrived) {
		var i int
		if _, err := fmt.Sscan(string(m.Body), &i); err != nil || failed[i] {
			t.Fatalf("message %q failed and is in the queue: %v", m.Body, err)
		}
	}
}

func TestRoutingByKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	exchange := unique()
	topic := r.topic(map[string]any{"exchange": exchange, "exchangeType": "topic", "bindings": "order.*,refund"})
	ch := r.channel()
	t.Cleanup(func() { r.must(ch.ExchangeDelete(exchange, false, false)) })
	p := r.producer(topic, 10, map[string]any{"exchange": exchange, "routeByKey": true, "routingKey": "refund"})
	m := func(key string) driver.Message { return driver.Message{Key: []byte(key), Body: []byte(key)} }
	r.kinds("", r.send(p, m("order.1"), m(""), m("order.2"))...)
	r.kinds(driver.NotFound, r.send(p, m("order.1.2"))...)
	r.kinds(driver.Rejected, r.send(p, m(strings.Repeat("k", 256)))...)
	for i, got := range r.take(r.consumer(topic, "", 10), 3) {
		if want := []string{"order.1", "refund", "order.2"}[i]; string(got.Key) != want {
			t.Errorf("key %q, want %q", got.Key, want)
		}
	}
}

// An exchange of type headers goes by the arguments of a binding, and tells a number from its text.
func TestHeadersExchange(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	exchange := unique()
	topic := r.topic(map[string]any{
		"exchange": exchange, "exchangeType": "headers",
		"bindingArguments": map[string]any{"x-match": "any", "urgent": true, "size": int64(7)},
	})
	ch := r.channel()
	t.Cleanup(func() { r.must(ch.ExchangeDelete(exchange, false, false)) })
	m := func(body string, header string, typed map[string]any) driver.Message {
		m := driver.Message{Body: []byte(body), Properties: driver.Values{"typedHeaders": typed}}
		if header != "" {
			m.Headers = []driver.Header{{Name: header, Value: []byte("create")}}
		}
		return m
	}
	p := r.producer(topic, 10, map[string]any{"exchange": exchange, "typedHeaders": map[string]any{"urgent": true}})
	r.kinds("", r.send(p, driver.Message{Body: []byte("0"), Headers: []driver.Header{{Name: "type", Value: []byte("create")}}},
		m("1", "type", map[string]any{"urgent": true}), m("2", "", map[string]any{"size": int64(7)}))...)
	r.kinds(driver.NotFound, r.send(p, m("3", "", nil), m("4", "", map[string]any{"size": "7"}), m("5", "type", map[string]any{"urgent": false}))...)
	r.kinds(driver.Rejected, r.send(p, m("6", "type", map[string]any{"type": "create"}))...)
	for i, got := range r.take(r.consumer(topic, "", 10), 3) {
		if string(got.Body) != fmt.Sprint(i) {
			t.Errorf("message %d is %s", i, got.Body)
		}
	}
}

func TestBindingArguments_PubSub_ConsumerGetsItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq-pubsub"))
	topic := r.topic(map[string]any{"exchangeType": "headers", "exchangeArguments": map[string]any{"alternate-exchange": "amq.fanout"}})
	values, err := r.address.Resolve(driver.OnConsumer, map[string]any{"bindingArguments": map[string]any{"size": int64(1)}, "queueArguments": "x-queue-mode=default"})
	r.must(err)
	c, err := r.conn.NewConsumer(r.context(), driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 10, Start: driver.StartNew, Options: values})
	r.must(err)
	t.Cleanup(func() { r.must(c.Close(r.context())) })
	p := r.producer(topic, 10, nil)
	size := func(n int64) driver.Message {
		return driver.Message{Body: fmt.Append(nil, n), Properties: driver.Values{"typedHeaders": map[string]any{"size": n}}}
	}
	r.kinds("", r.send(p, size(2), size(1))...)
	if got := r.take(c, 1)[0]; string(got.Body) != "1" {
		t.Errorf("%s", got.Body)
	}
}

func TestArguments_RabbitMQWouldPassOver_Refused(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	admin, _ := r.conn.(driver.Admin)
	for _, c := range []struct {
		option string
		given  map[string]any
	}{
		{"bindingArguments", map[string]any{"exchange": "e", "exchangeType": "headers"}},
		{"bindingArguments", map[string]any{"exchange": "e", "exchangeType": "headers", "bindings": "key"}},
		{"bindingArguments", map[string]any{"bindingArguments": "a=b"}},
		{"bindings", map[string]any{"bindings": "key"}},
		{"exchangeArguments", map[string]any{"exchangeArguments": "x-delayed-type=direct"}},
		{"queueArguments", map[string]any{"maxLength": int64(5), "queueArguments": map[string]any{"x-max-length": int64(6)}}},
	} {
		values, err := r.address.Resolve(driver.OnTopic, c.given)
		r.must(err)
		err = admin.CreateTopic(r.context(), driver.TopicSpec{Name: unique(), Partitions: 1, Replicas: 1, Options: values})
		if option := (*driver.OptionError)(nil); !errors.As(err, &option) || option.Name != c.option {
			t.Errorf("%v: %v", c.given, err)
		}
	}
	topic := r.topic(map[string]any{"queueArguments": map[string]any{"x-max-length": int64(1), "x-overflow": "reject-publish"}})
	p := r.producer(topic, 1, nil)
	r.eventually("the queue is full", func() bool { return r.send(p, text("x"))[0] != nil })
}

func TestTopicTypesOfAnExchange(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq-pubsub"))
	topic := r.topic(map[string]any{"exchangeType": "topic"})
	p := r.producer(topic, 10, map[string]any{"routeByKey": true})
	c := r.consumer(topic, "all", 10)
	r.kinds("", r.send(p, driver.Message{Key: []byte("a.b"), Body: []byte("body")})...)
	if got := r.take(c, 1)[0]; string(got.Key) != "a.b" || got.Topic != topic {
		t.Errorf("key %q of topic %q", got.Key, got.Topic)
	}
}

// Two groups on one queue would take each other's messages, where a script expects each to have all.
func TestOneGroupPerQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	topic := r.topic(nil)
	r.consumer(topic, "workers", 1)
	r.consumer(topic, "workers", 1)
	values, err := r.address.Resolve(driver.OnConsumer, nil)
	r.must(err)
	config := driver.ConsumerConfig{Topic: topic, Group: "auditors", Prefetch: 1, Start: driver.StartEarliest, Options: values}
	if _, err := r.conn.NewConsumer(r.context(), config); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a second group: %v, want it to be unsupported", err)
	}
	r.consumer(r.topic(nil), "auditors", 1)
}

func TestMissingQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	values, err := r.address.Resolve(driver.OnConsumer, nil)
	r.must(err)
	_, err = r.conn.NewConsumer(r.context(), driver.ConsumerConfig{Topic: unique(), Prefetch: 1, Start: driver.StartEarliest, Options: values})
	r.kinds(driver.NotFound, err)
}

// A queue that is deleted under its consumer is an error of Receive, and one that comes back is consumed again.
func TestDeletedQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	topic := r.topic(nil)
	p, c := r.producer(topic, 10, nil), r.consumer(topic, "", 10)
	r.delete(topic)
	_, err := c.Receive(r.context(), make(driver.Batch, 1))
	r.kinds(driver.NotFound, err)
	r.kinds(driver.NotFound, r.send(p, text("nowhere"))...)
	r.create(topic, nil)
	r.kinds("", r.send(p, text("again"))...)
	r.eventually("the message is received from the new queue", func() bool {
		b := make(driver.Batch, 1)
		n, err := c.Receive(r.context(), b)
		return err == nil && n == 1 && string(b[0].Body) == "again"
	})
}

func TestRequestThatGoesNowhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, server(t, "rabbitmq"))
	p, ok := r.producer(unique(), 1, nil).(driver.Requester)
	if !ok {
		t.Fatal("the producer is no Requester")
	}
	_, err := p.Request(r.context(), text("anyone?"))
	r.kinds(driver.NotFound, err)
	c, ok := r.consumer(r.topic(nil), "", 1).(driver.Replier)
	if !ok {
		t.Fatal("the consumer is no Replier")
	}
	r.kinds(driver.Rejected, c.Reply(context.Background(), driver.Message{}, text("unasked")))
}
