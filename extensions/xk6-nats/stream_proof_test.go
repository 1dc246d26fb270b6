package nats

import (
	"os"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestWhatAConfirmationProves(t *testing.T) {
	cluster := ""
	if _, hosts, ok := strings.Cut(os.Getenv("BROKER_URL_NATS_CLUSTER"), "://"); ok {
		cluster = "jetstream://" + hosts
	}
	for _, server := range []struct {
		url      string
		replicas int
		want     map[string]driver.Proof
	}{
		{"embedded:", 1, map[string]driver.Proof{
			"memory": {Confirm: driver.Accepted, How: "1 replica, in memory"},
			"file":   {Confirm: driver.Accepted, How: "1 replica, on file"},
		}},
		{cluster, 3, map[string]driver.Proof{
			"memory": {Confirm: driver.Replicated, How: "a majority of 3 replicas, in memory"},
			"file":   {Confirm: driver.Replicated, How: "a majority of 3 replicas, on file"},
		}},
	} {
		if server.url == "" || testing.Short() && server.replicas > 1 {
			continue
		}
		c, a := open(t, server.url)
		for storage, want := range server.want {
			topic := unique("proof")
			spec := driver.TopicSpec{
				Name: topic, Partitions: 1, Replicas: server.replicas, Options: values(t, a, driver.OnTopic, map[string]any{"storage": storage}),
			}
			if err := c.(driver.Admin).CreateTopic(within(t), spec); err != nil {
				t.Fatal(err)
			}
			producer := driver.ProducerConfig{Topic: topic, Window: 1, Options: values(t, a, driver.OnProducer, nil)}
			if got := c.(driver.Prover).Proof(within(t), producer, nil); got != want {
				t.Errorf("%s, %s: %v: %q", server.url, storage, got.Confirm, got.How)
			}
			if err := c.(driver.Admin).DeleteTopic(within(t), topic); err != nil {
				t.Error(err)
			}
		}
	}
}
