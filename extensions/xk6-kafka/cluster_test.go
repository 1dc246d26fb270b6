package kafka

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func cluster(t testing.TB) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	url := server("BROKER_URL_KAFKA_CLUSTER")
	if url == "" {
		t.Skip("no BROKER_URL_KAFKA_CLUSTER")
	}
	return newFixture(t, url)
}

// A topic that has just been created, with all its copies, takes messages at once, and all of them arrive.
func TestClusterIsReadyWhenTheTopicIs(t *testing.T) {
	f := cluster(t)
	if info := f.conn.(driver.Informer).Info(); info.Nodes != 3 {
		t.Fatalf("it has %d nodes, want 3", info.Nodes)
	}
	for range 3 {
		// So many partitions that their leaders take a moment to begin.
		topic := newTopicName()
		spec := driver.TopicSpec{Name: topic, Partitions: 30, Replicas: 3, Options: f.values(t, driver.OnTopic, map[string]any{"profile": "durable"})}
		if err := f.admin().CreateTopic(within(t), spec); err != nil {
			t.Fatal(err)
		}
		func() {
			p := f.producer(t, topic, map[string]any{"profile": "durable", "retries": 0, "partitioner": "roundrobin"})
			c := f.consumer(t, topic, topic)
			defer func() { closed(t, c) }()
			f.send(t, p, numbered("m", 60))
			if err := c.Settle(within(t), until(t, c, numbered("m", 60)), driver.Ack); err != nil {
				t.Error(err)
			}
		}()
		if err := f.admin().DeleteTopic(within(t), topic); err != nil {
			t.Fatal(err)
		}
	}
}
