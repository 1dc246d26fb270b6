package nats

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

// BROKER_URL_NATS and BROKER_URL_NATS_JETSTREAM name a server, BROKER_URL_NATS_CLUSTER the hosts of a cluster of three.
func TestConformance(t *testing.T) {
	const replicas = 3
	cluster := "" // with the scheme of this driver, whichever it has
	if _, hosts, ok := strings.Cut(os.Getenv("BROKER_URL_NATS_CLUSTER"), "://"); ok {
		cluster = "jetstream://" + hosts
	}
	for _, h := range []struct {
		name string
		drivertest.Harness
	}{
		{"embedded/core", drivertest.Harness{Driver: "nats", URL: "embedded-nats:"}},
		{"embedded/jetstream", drivertest.Harness{Driver: "nats-jetstream", URL: "embedded:"}},
		{"server/core", drivertest.Harness{Driver: "nats", URL: os.Getenv("BROKER_URL_NATS")}},
		{"server/jetstream", drivertest.Harness{Driver: "nats-jetstream", URL: os.Getenv("BROKER_URL_NATS_JETSTREAM")}},
		{"cluster/jetstream", drivertest.Harness{Driver: "nats-jetstream", URL: cluster, Topic: replicated(replicas)}},
	} {
		t.Run(h.name, func(t *testing.T) {
			if testing.Short() && strings.HasPrefix(h.name, "cluster/") {
				t.Skip("part of make test-full")
			}
			drivertest.Run(t, h.Harness)
		})
	}
}

// replicated makes topics whose messages are on several servers.
func replicated(replicas int) func(testing.TB, driver.Conn) string {
	return func(t testing.TB, c driver.Conn) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		admin, name := c.(driver.Admin), unique("replicated")
		d, err := driver.Lookup("jetstream")
		if err != nil {
			t.Fatal(err)
		}
		options, err := d.Resolve(driver.OnTopic, driver.Durable, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := admin.CreateTopic(ctx, driver.TopicSpec{Name: name, Partitions: 1, Replicas: replicas, Options: options}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := admin.DeleteTopic(ctx, name); err != nil && d.KindOf(err) != driver.NotFound {
				t.Error(err)
			}
		})
		return name
	}
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	drivertest.Strangers(t, "nats://127.0.0.1:1")
}
