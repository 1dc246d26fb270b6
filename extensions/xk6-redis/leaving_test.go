package redis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// TestASubscriberThatStopsIsGivenTheRest has a subscriber far away stop amid the load, with more under way than its prefetch: it gets as many messages as the server
// said that it gave to somebody, and after that nothing.
func TestASubscriberThatStopsIsGivenTheRest(t *testing.T) {
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
		b := make(driver.Batch, 100)
		received := len(receive(t, leaves, 1))
		stopped := make(chan error, 1)
		go func() {
			within, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			stopped <- leaves.(driver.Stopper).Stop(within)
		}()
		read := func() (n int) {
			now, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			n, err := leaves.Receive(now, b)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			received += n
			return n
		}
		for over := false; !over; {
			read()
			select {
			case err := <-stopped:
				if over = true; err != nil {
					t.Fatal(err)
				}
			default:
			}
		}
		for read() > 0 {
		}
		stop()
		sending.Wait()
		time.Sleep(3 * away) // what the server would still have given
		if read() > 0 || int64(received) != given || given < 2*prefetch {
			t.Errorf("%d messages came, and the server gave it %d", received, given)
		}
		if err := leaves.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
