package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
)

// A loop that sends waits for the system where the system could have ended it: not before its last message is due, nor before its time is over.
func TestWhatAProduceLoopAwaits(t *testing.T) {
	const service = 30 * time.Millisecond // of each message, one after the other
	for name, c := range map[string]struct {
		loop       Produce
		window     int
		took, want time.Duration
	}{
		"a schedule":                        {Produce{Schedule: constant(10, time.Second)}, 10, 930 * time.Millisecond, 30 * time.Millisecond},
		"a schedule that a count ends":      {Produce{Schedule: constant(10, 0), Count: 5}, 10, 430 * time.Millisecond, 30 * time.Millisecond},
		"a schedule that the window stalls": {Produce{Schedule: constant(100, 500*time.Millisecond)}, 1, 1500 * time.Millisecond, 1010 * time.Millisecond},
		"a count":                           {Produce{Count: 20}, 1, 600 * time.Millisecond, 600 * time.Millisecond},
		"a count before its time":           {Produce{Count: 20, Duration: time.Second}, 1, 600 * time.Millisecond, 600 * time.Millisecond},
		"a time":                            {Produce{Duration: 500 * time.Millisecond}, 4, 630 * time.Millisecond, 130 * time.Millisecond},
		"a time before its count":           {Produce{Count: 1000, Duration: 500 * time.Millisecond}, 4, 630 * time.Millisecond, 130 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{Servers: 1, Service: func(int64) time.Duration { return service }})
				c.loop.Payload, c.loop.Batch = payload.Spec{Size: payload.Fixed(100)}, 1
				r, err := c.loop.Run(t.Context(), []*Sender{b.sender(c.window)})
				if err != nil {
					t.Fatal(err)
				}
				if r.Elapsed != c.took || r.Awaited != c.want {
					t.Errorf("of %v it waited for the system for %v, want %v of %v", r.Elapsed, r.Awaited, c.want, c.took)
				}
				b.finish()
			})
		})
	}
}

// A loop that receives waits for the system until messages come that are due, and while it settles: not while it works, nor for what does not come, nor
// until its own time is over.
func TestWhatAConsumeLoopAwaits(t *testing.T) {
	for name, c := range map[string]struct {
		loop       Consume
		consumers  int
		scheduled  bool // else in a closed loop
		took, want time.Duration
	}{
		"a count":                         {Consume{Count: 4}, 1, false, 400 * time.Millisecond, 400 * time.Millisecond},
		"a count of what has a schedule":  {Consume{Count: 4}, 1, true, 400 * time.Millisecond, 0},
		"work":                            {Consume{Count: 4, Work: 60 * time.Millisecond}, 1, false, 460 * time.Millisecond, 220 * time.Millisecond},
		"work of two":                     {Consume{Count: 4, Work: 160 * time.Millisecond}, 2, false, 560 * time.Millisecond, 240 * time.Millisecond},
		"a time":                          {Consume{Duration: 250 * time.Millisecond}, 1, false, 250 * time.Millisecond, 0},
		"a time before the count":         {Consume{Count: 4, Duration: 250 * time.Millisecond}, 1, false, 250 * time.Millisecond, 0},
		"a count before the time":         {Consume{Count: 2, Duration: 250 * time.Millisecond}, 1, false, 200 * time.Millisecond, 200 * time.Millisecond},
		"idling":                          {Consume{Idle: 150 * time.Millisecond}, 1, false, 550 * time.Millisecond, 400 * time.Millisecond},
		"idling, of what has a schedule":  {Consume{Idle: 150 * time.Millisecond}, 1, true, 550 * time.Millisecond, 0},
		"idling, and there is nothing":    {Consume{Idle: 50 * time.Millisecond}, 1, false, 50 * time.Millisecond, 0},
		"a count before it idles, of two": {Consume{Count: 4, Idle: 150 * time.Millisecond}, 2, false, 400 * time.Millisecond, 400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				all := make([]*Consumer, c.consumers)
				for i := range all {
					all[i] = b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 1})
				}
				s := b.sender(10)
				start := driver.Now()
				var feeding sync.WaitGroup
				feeding.Go(func() {
					for n := range 4 { // after 100, 200, 300 and 400 ms
						time.Sleep(time.Duration(start + int64(n+1)*int64(100*time.Millisecond) - driver.Now()))
						at := Timing{}
						if c.scheduled {
							at.Due = driver.Now()
						}
						s.Send(t.Context(), driver.Batch{{Body: []byte("x")}}, at, func([]Receipt) {})
					}
				})
				r := b.consume(t.Context(), c.loop, all...)
				took := time.Duration(driver.Now() - start)
				feeding.Wait()
				if took != c.took || r.Awaited != c.want {
					t.Errorf("of %v it waited for the system for %v, want %v of %v", took, r.Awaited, c.want, c.took)
				}
				for _, consumer := range all {
					if err := consumer.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				b.finish()
			})
		})
	}
}
