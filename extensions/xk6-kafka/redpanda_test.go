package kafka

import (
	"os"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

func TestWhoAnswersIsToldByTheClustersID(t *testing.T) {
	for _, c := range []struct{ cluster, protocol, want string }{
		{"eGs2LWJyb2tlci1rYWZrYQ", "4.3", "Apache Kafka 4.3, by its protocol"},
		{"", "", "Apache Kafka"},
		{"redpanda.3f5a1e5e-9d51-44c0-8c9c-0a8a3a3d6a0e", "3.9", "Redpanda"},
		{"redpanda.initializing", "", "Redpanda"},
		{"redpandas", "4.3", "Apache Kafka 4.3, by its protocol"},
	} {
		if got := product(c.cluster, c.protocol); got != c.want {
			t.Errorf("cluster id %q: %q, want %q", c.cluster, got, c.want)
		}
	}
}

// The scheme is what the user says, and the server what it says itself.
func TestAKafkaIsNoRedpandaByItsScheme(t *testing.T) {
	url := server("BROKER_URL_KAFKA")
	if url == "" {
		t.Skip("no BROKER_URL_KAFKA")
	}
	f := newFixture(t, strings.Replace(url, "kafka:", "redpanda:", 1))
	if f.address.Driver.Name != "kafka" {
		t.Errorf("the driver is %s", f.address.Driver.Name)
	}
	if info := f.conn.(driver.Informer).Info(); !strings.HasPrefix(info.Server, "Apache Kafka ") {
		t.Errorf("the server is %q", info.Server)
	}
}

// Redpanda comes as a container only: this test runs where there is one.
func TestRedpandaConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	if os.Getenv("BROKER_URL_REDPANDA") == "" {
		t.Skip("no BROKER_URL_REDPANDA")
	}
	t.Setenv("BROKER_CONFORMANCE", "") // which is about the driver on Kafka
	f := newFixture(t, server("BROKER_URL_REDPANDA"))
	if info := f.conn.(driver.Informer).Info(); !strings.HasPrefix(info.Server, "Redpanda") {
		t.Errorf("the server is %q", info.Server)
	}
	drivertest.Run(t, drivertest.Harness{Driver: "kafka", URL: server("BROKER_URL_REDPANDA"), HeaderBytes: true})
}
