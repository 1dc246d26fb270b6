package memory_test

import (
	"context"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// TestVirtualTime lets message 2 take a second at a server that otherwise takes a millisecond, under a schedule of one
// message every two: in virtual time each Done and each arrival is at an instant that can be told beforehand.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service, stall, transit, interval = time.Millisecond, time.Second, 3 * time.Millisecond, 2 * time.Millisecond
		d := memory.New(memory.Config{
			Service: func(n int64) time.Duration {
				if n == 2 {
					return stall
				}
				return service
			},
			Transit: func(int64) time.Duration { return transit },
		}).Driver()
		ctx := t.Context()
		c, err := d.Open(ctx, driver.Target{URL: &url.URL{Scheme: d.Name}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.(driver.Admin).CreateTopic(ctx, driver.TopicSpec{Name: "topic", Partitions: 1, Replicas: 1}); err != nil {
			t.Fatal(err)
		}
		p, err := c.NewProducer(ctx, driver.ProducerConfig{Topic: "topic", Window: 100})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.NewConsumer(ctx, driver.ConsumerConfig{Topic: "topic", Prefetch: 100, Start: driver.StartNew})
		if err != nil {
			t.Fatal(err)
		}

		const n = 6
		begin := driver.Now()
		var confirmed, received [n]time.Duration
		for i := range n {
			p.Send(ctx, driver.Batch{{Body: []byte("body")}}, func(int, error) { confirmed[i] = time.Duration(driver.Now() - begin) })
			time.Sleep(interval)
		}
		for i := range n {
			b := make(driver.Batch, 1)
			if _, err := r.Receive(ctx, b); err != nil {
				t.Fatal(err)
			}
			received[i] = time.Duration(b[0].Received - begin)
		}
		if err := p.Close(ctx); err != nil {
			t.Fatal(err)
		}

		free := time.Duration(0)
		for i := range n {
			took := service
			if i == 2 {
				took = stall
			}
			free = max(free, time.Duration(i)*interval) + took
			if confirmed[i] != free {
				t.Errorf("message %d: confirmed at %v, want %v", i, confirmed[i], free)
			}
			if want := max(free+transit, n*interval); received[i] != want {
				t.Errorf("message %d: received at %v, want %v", i, received[i], want)
			}
		}
		for _, x := range []interface{ Close(context.Context) error }{r, c} {
			if err := x.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	})
}
