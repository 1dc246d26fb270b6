package amqp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestWhatAConfirmationProves(t *testing.T) {
	t.Parallel()
	queue, stream := os.Getenv("BROKER_URL_RABBITMQ"), os.Getenv("BROKER_URL_RABBITMQ_STREAM")
	nodes := func(url string) string { return url + "," + url[strings.LastIndex(url, "@")+1:] } // the URL of a cluster, as far as anybody can tell
	quorum := map[string]any{"queueType": "quorum"}
	for _, c := range []struct {
		url             string
		topic, producer map[string]any
		replicas        int
		elsewhere       bool // another test created the queue
		want            driver.Confirm
		how             string
	}{
		{url: queue, want: driver.Accepted, how: "a durable classic queue, persistent messages"},
		{url: queue, producer: map[string]any{"persistent": false}, want: driver.Accepted, how: "messages not persistent"},
		{url: queue, topic: map[string]any{"durable": false}, want: driver.Accepted, how: "not durable"},
		{url: nodes(queue), topic: quorum, replicas: 3, want: driver.Replicated, how: "a majority of the quorum queue's members, whose number"},
		{url: queue, topic: quorum, replicas: 3, want: driver.Accepted, how: "a majority of the quorum queue's members, perhaps the only one"},
		{url: nodes(queue), topic: quorum, replicas: 1, want: driver.Accepted, how: "of one member"},
		{url: nodes(queue), topic: quorum, replicas: 3, elsewhere: true, want: driver.Accepted, how: "this test did not create"},
		{url: nodes(queue), topic: quorum, replicas: 3, producer: map[string]any{"exchange": "amq.topic"}, want: driver.Accepted, how: "each queue that the exchange"},
		{url: nodes(queue), topic: quorum, replicas: 3, producer: map[string]any{"routingKey": "other"}, want: driver.Accepted, how: "the queue that the routing key names"},
		{url: nodes(queue), topic: quorum, replicas: 3, producer: map[string]any{"routingKey": "orders"}, want: driver.Replicated, how: "a majority"},
		{url: nodes(stream), replicas: 3, want: driver.Replicated, how: "a majority of the stream's members"},
		{url: nodes(stream), replicas: 1, want: driver.Accepted, how: "of one member"},
		{url: stream, elsewhere: true, want: driver.Accepted, how: "this test did not create"},
		{url: stream, producer: map[string]any{"routingKey": "other"}, want: driver.Accepted, how: "the queue that the routing key names"},
	} {
		got := newRig(t, c.url).proves(c.topic, c.producer, c.replicas, !c.elsewhere)
		if got.Confirm != c.want || !strings.Contains(got.How, c.how) {
			t.Errorf("%+v: %v: %q", c, got.Confirm, got.How)
		}
	}
}

// Where keys decide who gets a message nobody but the broker knows whom one was meant for.
func TestWhoIsRouted(t *testing.T) {
	t.Parallel()
	queue, pubsub := os.Getenv("BROKER_URL_RABBITMQ"), os.Getenv("BROKER_URL_RABBITMQ_PUBSUB")
	type options = map[string]any
	for _, c := range []struct {
		url             string
		topic, producer options
		elsewhere       bool
		want            bool
	}{
		{url: pubsub},
		{url: pubsub, producer: options{"routingKey": "red", "routeByKey": true}}, // a fanout looks at no key
		{url: pubsub, topic: options{"exchangeType": "direct"}, want: true},
		{url: pubsub, topic: options{"exchangeType": "topic"}, producer: options{"routingKey": "red"}, want: true},
		{url: pubsub, elsewhere: true},
		{url: pubsub, elsewhere: true, producer: options{"routingKey": "red"}, want: true},
		{url: pubsub, elsewhere: true, producer: options{"routeByKey": true}, want: true},
		{url: queue},
		{url: queue, producer: options{"routeByKey": true}}, // without an exchange it says nothing
		{url: queue, producer: options{"routingKey": "other"}, want: true},
		{url: queue, topic: options{"exchange": "e"}, producer: options{"exchange": "e"}},
		{url: queue, topic: options{"exchange": "e"}, producer: options{"exchange": "e", "routingKey": "red"}, want: true},
		{url: queue, topic: options{"exchange": "e", "bindings": "red,blue"}, producer: options{"exchange": "e", "routingKey": "red"}},
		{url: queue, topic: options{"exchange": "e", "bindings": "red,blue"}, producer: options{"exchange": "e"}, want: true},
		{url: queue, topic: options{"exchange": "e", "exchangeType": "fanout"}, producer: options{"exchange": "e", "routingKey": "red"}},
		{url: queue, topic: options{"exchange": "e", "exchangeType": "headers"}, producer: options{"exchange": "e"}, want: true},
		{url: queue, topic: options{"exchange": "e"}, producer: options{"exchange": "e", "routeByKey": true}, want: true},
		{url: queue, producer: options{"exchange": "another", "routingKey": "red"}, want: true},
	} {
		if got := newRig(t, c.url).proves(c.topic, c.producer, 1, !c.elsewhere); got.Routed != c.want {
			t.Errorf("%+v: %v", c, got.Routed)
		}
	}
}

// proves asks of a producer on the topic "orders", which this test created or not.
func (r *rig) proves(topic, producer map[string]any, replicas int, here bool) driver.Proof {
	r.Helper()
	options, err := r.address.Resolve(driver.OnTopic, topic)
	r.must(err)
	created := &driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: replicas, Options: options}
	if !here {
		created = nil
	}
	sending, err := r.address.Resolve(driver.OnProducer, producer)
	r.must(err)
	return r.conn.(driver.Prover).Proof(r.context(), driver.ProducerConfig{Topic: "orders", Window: 1, Options: sending}, created)
}
