package redis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// TestASubscriberThatStopsIsGivenTheRest has a subscriber far away stop amid the load, with more under way than its prefetch: it gets as many messages as the server
// said that it gave to somebody, and after that nothing.
func TestASubscriberThatStopsIsGivenTheRest(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	const away, rounds, prefetch = 20 * time.Millisecond, 10, 5
	s := start(t)
	between, err := proxy.Listen(s.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = between.Close() })
	between.Delay(away)
	url := "redis-pubsub://" + between.Addr()
	c := dial(t, url)
	for range rounds {
		leaves := consume(t, c, url, driver.ConsumerConfig{Topic: "stops", Prefetch: prefetch, Start: driver.StartNew}, nil)
		ctx, stop := context.WithCancel(t.Context())
		var given int64
		var sending sync.WaitGroup
		sending.Go(func() {
			for ctx.Err() == nil {
				given += s.client.Publish(t.Context(), "stops", "x").Val()
			}
		})
		received := len(receive(t, leaves, 1))
		within, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		rest, more := drivertest.Stop(within, t, leaves)
		received += rest
		stop()
		sending.Wait()
		time.Sleep(3 * away) // what the server would still have given
		if more() > 0 || int64(received) != given || given < 2*prefetch {
			t.Errorf("%d messages came, and the server gave it %d", received, given)
		}
		if err := leaves.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
