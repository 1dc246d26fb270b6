package engine

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// What a subscriber receives is no copy of what another had that has left, and has its latency. One that begins with the earliest is given
// all of it again.
func TestASubscriberFromTheEarliestExpectsEverythingWhoeverWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Full()})
		b.produce(b.sender(100), 100)
		for _, start := range []driver.Start{driver.StartEarliest, driver.StartEarliest, driver.StartNew} {
			c := b.consumer(driver.ConsumerConfig{Start: start})
			if start == driver.StartEarliest {
				b.settle(c, b.receive(c, 100), 0, 100, driver.Ack)
			}
			b.close(c)
		}
		b.finish()
		if a := b.only(); a.Subscribers != 2 || a.Expected != 200 || a.Received != 200 || a.Settled != 200 || a.Duplicated+a.Redelivered+a.Missing+a.Unexpected != 0 {
			t.Errorf("%+v", a)
		}
		if n := b.series.Trend(recording.Closed, recording.E2ELatency).Count(); n != 200 {
			t.Errorf("%d latencies", n)
		}
	})
}

// However often consumers come and go, a group has as many members as were there at a time.
func TestMembersAreThoseAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		defer b.finish()
		for range 3 {
			var all []*Consumer
			for range 2 {
				all = append(all, b.consumer(driver.ConsumerConfig{}))
			}
			for _, c := range all {
				if err := c.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if members := b.members(); !reflect.DeepEqual(members, map[string]int{account.Subscribers: 2}) {
			t.Errorf("subscribers: %v", members)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		defer b.finish()
		for range 3 {
			one, two := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.consumer(driver.ConsumerConfig{Group: "workers"})
			for _, c := range []*Consumer{one, two} {
				if err := c.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if members := b.members(); !reflect.DeepEqual(members, map[string]int{"workers": 2}) {
			t.Errorf("group: %v", members)
		}
	})
}

// members counts the members of each group in the result.
func (b *bench) members() map[string]int {
	b.t.Helper()
	members := map[string]int{}
	for _, g := range b.run.NewCollector().Result().Topics[0].Groups {
		members[g.Group] = g.Members
	}
	return members
}
