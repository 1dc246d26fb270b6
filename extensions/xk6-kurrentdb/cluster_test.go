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

// Of several hosts the leader is used, whichever comes first, and the next leader when that one leads no more.
func TestTheLeaderIsFound(t *testing.T) {
	one, two := start(t, double.Config{}), start(t, double.Config{})
	elect(t, two, one)
	opened, err := one.try(one.url + "," + two.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close(context.Background()) //nolint:errcheck // it never fails
	c := opened.(*conn)
	one.topic(c, "t")
	p := one.producer(c, "t", nil)
	if err := one.send(p, bodies("a"))[0]; err != nil {
		t.Fatal(err)
	}
	if one.server.Appends() > 0 || two.server.Appends() != 2 { // metadata, and a message
		t.Errorf("%d appends at the follower and %d at the leader", one.server.Appends(), two.server.Appends())
	}
	elect(t, one, two)
	if err := one.send(p, bodies("b"))[0]; one.kind(err) != driver.Disconnected {
		t.Errorf("by a server that does not lead any more: kind %s: %v", one.kind(err), err)
	}
	if err := one.send(p, bodies("c"))[0]; err != nil {
		t.Errorf("after that: %v", err)
	}
	if one.server.Appends() != 1 {
		t.Errorf("%d appends at the new leader", one.server.Appends())
	}
}

func TestAServerThatDoesNotLeadSaysSo(t *testing.T) {
	one, two := start(t, double.Config{}), start(t, double.Config{})
	elect(t, two, one)
	err := one.open().CreateTopic(one.context(), driver.TopicSpec{Name: "t", Options: driver.Values{}})
	if one.kind(err) != driver.Disconnected || !strings.Contains(err.Error(), "a URL with the hosts of the cluster") {
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
