package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A server is killed under load and comes back: what was confirmed is there, what failed says why, and the run goes on.
func TestServerKilledUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := startProcess(t)
	c, a := open(t, "jetstream://"+s.address)
	topic := unique("restart")
	create(t, c, a, topic, nil)
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 100}, nil)
	p := producer(t, c, a, topic, nil)

	var (
		mu        sync.Mutex
		confirmed = map[string]bool{}
		kinds     = map[driver.Kind]int{}
		after     atomic.Int64 // confirmed since the restart
		back      atomic.Bool
		stop      = make(chan struct{})
		load      sync.WaitGroup
	)
	load.Go(func() {
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			body := fmt.Sprint(i)
			p.Send(context.Background(), driver.Batch{{Body: []byte(body)}}, func(_ int, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					kinds[a.Driver.KindOf(err)]++
					return
				}
				confirmed[body] = true
				if back.Load() {
					after.Add(1)
				}
			})
		}
	})
	received := map[string]bool{}
	receive := func(until func() bool) {
		t.Helper()
		deadline := time.Now().Add(60 * time.Second)
		b := make(driver.Batch, 50)
		for !until() {
			if time.Now().After(deadline) {
				t.Fatalf("confirmed %d, received %d, errors %v", len(confirmed), len(received), kinds)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			n, err := k.Receive(ctx, b)
			cancel()
			if errors.Is(err, driver.ErrClosed) {
				t.Fatal(err)
			}
			for _, m := range b[:n] {
				received[string(m.Body)] = true
			}
			_ = k.Settle(context.Background(), b[:n], driver.Ack) // fails while the server is away
		}
	}
	receive(func() bool { return len(received) > 100 })
	s.kill()
	receive(func() bool { mu.Lock(); defer mu.Unlock(); return kinds[driver.Disconnected] > 0 })
	s.start(t)
	back.Store(true)
	receive(func() bool { return after.Load() > 100 })
	close(stop)
	load.Wait()
	if err := p.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	receive(func() bool {
		for body := range confirmed {
			if !received[body] {
				return false
			}
		}
		return true
	})
	delete(kinds, driver.Disconnected)
	delete(kinds, driver.NotFound) // the stream is not there before the server has recovered it
	if len(kinds) > 0 {
		t.Errorf("other errors: %v", kinds)
	}
}
