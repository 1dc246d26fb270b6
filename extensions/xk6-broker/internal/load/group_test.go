package load

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
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
		if n := b.series.Trend(metric.Closed, metric.E2ELatency).Count(); n != 200 {
			t.Errorf("%d latencies", n)
		}
	})
}

// distant is a connection over which the answer that a consumer is open takes a while, in which messages come already.
type distant struct{ driver.Conn }

func (d distant) NewConsumer(ctx context.Context, c driver.ConsumerConfig) (driver.Consumer, error) {
	defer time.Sleep(10 * time.Millisecond)
	return d.Conn.NewConsumer(ctx, c)
}

// Subscribers come and go all the time, each on its way in while another is on its way out: nobody is given anything twice.
func TestSubscribersThatComeAndGoHaveNoDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		b.conn = distant{b.conn}
		s := b.sender(1000)
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				in := NewBuffer(50)
				for until := driver.Now() + int64(6*time.Second); driver.Now() < until; {
					c := b.consumer(driver.ConsumerConfig{})
					for range 1 + i {
						n, err := c.Receive(t.Context(), in)
						if err != nil {
							t.Error(err)
						}
						c.HandOver(in, n)
					}
					b.close(c)
				}
			})
		}
		if _, err := (Produce{Schedule: constant(1000, 7*time.Second), Payload: payload.Spec{Size: payload.Fixed(64)}}).Run(t.Context(), []*Sender{s}); err != nil {
			t.Error(err)
		}
		all.Wait()
		b.finish()
		a := b.only()
		if a.Duplicated+a.Redelivered != 0 || a.Subscribers > 6 || a.Received < 500 {
			t.Errorf("%+v", a)
		}
		if n := b.series.Trend(metric.Open, metric.E2ELatency).Count(); n != a.Received {
			t.Errorf("%d latencies of %d", n, a.Received)
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
		if members := b.topic.members(); !reflect.DeepEqual(members, map[string]int{result.Subscribers: 2}) {
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
		if members := b.topic.members(); !reflect.DeepEqual(members, map[string]int{"workers": 2}) {
			t.Errorf("group: %v", members)
		}
	})
}
