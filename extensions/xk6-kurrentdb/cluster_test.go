package kurrentdb

import (
	"context"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

// elect has the servers know of one another; the first leads.
func elect(t *testing.T, all ...*fixture) {
	t.Helper()
	var addresses []string
	for _, f := range all {
		addresses = append(addresses, f.server.Addr())
	}
	for _, f := range all {
		if err := f.server.Elect(addresses...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAServerThatDoesNotLeadSaysSo(t *testing.T) {
	one, two := start(t, double.Config{}), start(t, double.Config{})
	elect(t, two, one)
	err := one.open().CreateTopic(one.context(), driver.TopicSpec{Name: "t", Options: driver.Values{}})
	if one.kind(err) != driver.Disconnected || !strings.Contains(err.Error(), "the URL must have the leader's host") {
		t.Errorf("kind %s: %v", one.kind(err), err)
	}
}

// Only where the gossip tells of several members that share what is written a confirmation proves more than one.
func TestProof(t *testing.T) {
	all := []*fixture{start(t, double.Config{}), start(t, double.Config{}), start(t, double.Config{}), start(t, double.Config{})}
	c := all[0].open()
	if got := c.Proof(all[0].context(), driver.ProducerConfig{}, nil); got.Confirm != driver.Accepted || !strings.Contains(got.How, "one server") {
		t.Errorf("alone: %+v", got)
	}
	elect(t, all...)
	if got := c.Proof(all[0].context(), driver.ProducerConfig{}, nil); got.Confirm != driver.Replicated || !strings.Contains(got.How, "3 members") {
		t.Errorf("three, and a read-only replica: %+v", got)
	}
	elect(t, all[0], all[0])
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if got := c.Proof(gone, driver.ProducerConfig{}, nil); got.Confirm != driver.Accepted {
		t.Errorf("where the gossip cannot be read: %+v", got)
	}
}
