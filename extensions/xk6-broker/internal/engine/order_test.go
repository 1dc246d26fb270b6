package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Requests that are under way at a time go out in an order that is nobody's: none of them overtakes another.
func TestRequestsSideBySideAreNotReordered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		const rounds, sideBySide = 20, 50
		var answering sync.WaitGroup
		answering.Go(func() {
			for got := 0; got < rounds*sideBySide; {
				in := NewBuffer(10)
				n, err := c.Receive(t.Context(), in)
				if err != nil {
					t.Error(err)
					return
				}
				c.HandOver(in, n)
				for i := range n {
					if err := c.Reply(t.Context(), Endpoint{Address: b.topic.Address}, in.Messages[i], driver.Message{Body: []byte("yes")}); err != nil {
						t.Error(err)
					}
				}
				if err := c.Settle(t.Context(), in, 0, n, driver.Ack); err != nil {
					t.Error(err)
				}
				got += n
			}
		})
		s := b.sender(1000)
		for range rounds {
			var asking sync.WaitGroup
			for range sideBySide {
				asking.Go(func() {
					if _, err := s.Request(t.Context(), time.Minute, driver.Message{Body: []byte("?")}, Timing{}, nil); err != nil {
						t.Error(err)
					}
				})
			}
			asking.Wait()
		}
		answering.Wait()
		b.finish()
		if a := b.only(); a.Expected != rounds*sideBySide || a.Received != a.Expected || a.Reordered != 0 || a.Lost != 0 {
			t.Errorf("%+v", a)
		}
		if n := b.run.producers.Load(); n > sideBySide+1 {
			t.Errorf("%d producers for %d requests side by side", n, sideBySide)
		}
	})
}

// Both ends count the bytes of bodies as the broker has them, wherever the stamp is.
func TestBytesReceivedAreThoseSent(t *testing.T) {
	for _, mode := range []StampMode{StampInBody, StampInHeader, StampOff} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			c := b.consumer(driver.ConsumerConfig{Group: "workers"})
			s := b.sender(100)
			s.stamp = mode
			for range 10 {
				done := make(chan struct{})
				s.Send(t.Context(), driver.Batch{{Body: []byte("hello")}}, Timing{}, func([]Receipt) { close(done) })
				<-done
			}
			if mode == StampInBody {
				b.produce(s, 10)
			}
			b.receive(c, int(b.series.Count(recording.Sent)))
			b.finish()
			if sent, received := b.series.Count(recording.BytesSent), b.series.Count(recording.BytesReceived); sent != received || sent < 50 {
				t.Errorf("%s: %d bytes were sent and %d received", mode, sent, received)
			}
		})
	}
}
