package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// onBrokers runs a test with a broker that takes messages back, with one that knows nothing but acks, and with one that keeps nothing.
func onBrokers(t *testing.T, config memory.Config, test func(t *testing.T, b *bench, f driver.Features)) {
	t.Helper()
	full, acks := memory.Full(), memory.Full()
	acks.Settle = driver.Ack
	for name, f := range map[string]driver.Features{"requeues": full, "only acks": acks, "keeps nothing": forgetful()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config.Features = f
				test(t, newBench(t, config), f)
			})
		})
	}
}

func (b *bench) consume(ctx context.Context, c Consume, consumers ...*Consumer) Consumed {
	b.t.Helper()
	c, err := c.Resolve(b.topic.Address.Driver.Features)
	if err != nil {
		b.t.Fatal(err)
	}
	did, err := c.Run(ctx, consumers)
	if err != nil || did.Errors != 0 {
		b.t.Errorf("%+v, %v", did, err)
	}
	return did
}

// acked is how many are, of some messages that were worked on.
func acked(f driver.Features, n uint64) uint64 {
	if f.Settle == 0 {
		return 0
	}
	return n
}

// A loop whose time is over within a batch finishes the message that it is at; the others are for what the consumer does next, in order.
func TestWhatALoopDoesNotBeginIsForTheNext(t *testing.T) {
	for _, ack := range []AckMode{"", AckMessage} {
		onBrokers(t, memory.Config{}, func(t *testing.T, b *bench, f driver.Features) {
			if f.Settle == 0 {
				ack = ""
			}
			c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10})
			b.produce(b.sender(100), 50)
			loop := Consume{Batch: 10, Ack: ack, Work: time.Second, Duration: 14500 * time.Millisecond}
			for range 2 {
				if did := b.consume(t.Context(), loop, c); did.Received != 15 || did.Settled != acked(f, 15) {
					t.Errorf("%+v; want 15 received and settled", did)
				}
			}
			for _, next := range []uint64{30, 33, 36} { // its batch ends at 40
				if in := b.receive(c, 3); in.Stamps[0].Sequence != next || in.Stamps[2].Sequence != next+2 {
					t.Errorf("%+v, want %d and the next two", in.Stamps, next)
				}
			}
			loop.Work, loop.Duration, loop.Count = 0, 0, 11
			b.consume(t.Context(), loop, c)
			b.finish()
			if a := b.only(); a.Received != 50 || a.Drained != 0 || a.Missing != 0 || a.Redelivered != 0 || a.Duplicated != 0 || a.Reordered != 0 {
				t.Errorf("%+v", a)
			}
			if n := b.series.Count(recording.Received); n != 50 {
				t.Errorf("%d were received", n)
			}
		})
	}
}

// A count ends where it says, within a batch of messages that are worked on one after the other, whoever works on them.
func TestACountThatEndsWithinABatch(t *testing.T) {
	onBrokers(t, memory.Config{}, func(t *testing.T, b *bench, f driver.Features) {
		c, other := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10}), b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10})
		b.produce(b.sender(100), 50)
		for _, consumers := range [][]*Consumer{{c}, {c, other}, {c}} {
			if did := b.consume(t.Context(), Consume{Batch: 10, Work: time.Second, Count: 7}, consumers...); did.Received != 7 || did.Settled != acked(f, 7) {
				t.Errorf("%+v; want 7 received and settled", did)
			}
		}
		b.finish()
	})
}

// What waits with a consumer that does not ask again has reached nobody.
func TestWhatALoopLeavesForNobodyIsDrained(t *testing.T) {
	onBrokers(t, memory.Config{}, func(t *testing.T, b *bench, f driver.Features) {
		c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10})
		b.produce(b.sender(100), 50)
		b.consume(t.Context(), Consume{Batch: 10, Work: time.Second, Duration: 14500 * time.Millisecond}, c)
		b.finish()
		if a := b.only(); a.Received != 15 || a.Drained != 35 || a.Missing != 0 || a.Lost != 0 || f.Settle != 0 && a.Settled != 15 {
			t.Errorf("%+v", a)
		}
	})
}

// Where its VU's time is over the loop ends at once, and gives back what it was at.
func TestALoopThatIsCutShortGivesBackWhatItWasAt(t *testing.T) {
	onBrokers(t, memory.Config{}, func(t *testing.T, b *bench, f driver.Features) {
		c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10})
		b.produce(b.sender(100), 50)
		ctx, cancel := context.WithTimeout(t.Context(), 14500*time.Millisecond)
		defer cancel()
		if did := b.consume(ctx, Consume{Batch: 10, Work: time.Second}, c); did.Received != 15 || did.Settled != acked(f, 14) {
			t.Errorf("%+v; want 15 received and 14 settled", did)
		}
		if n, want := b.series.Count(recording.Requeued), map[bool]int64{true: 1}[f.Settle.Has(driver.Requeue)]; n != want {
			t.Errorf("%d were given back, want %d", n, want)
		}
		b.finish()
		if a := b.only(); a.Received != 15 || a.Drained != 35 || a.Missing != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// A loop whose consumer is closed begins nothing more: what it had not begun cannot be settled.
func TestALoopWhoseConsumerIsClosedEnds(t *testing.T) {
	onBrokers(t, memory.Config{}, func(t *testing.T, b *bench, f driver.Features) {
		c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10})
		b.produce(b.sender(100), 50)
		loop, err := Consume{Batch: 10, Work: time.Second, Duration: 30 * time.Second}.Resolve(f)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(4500*time.Millisecond, func() { _ = c.Close(t.Context()) })
		if did, err := loop.Run(t.Context(), []*Consumer{c}); err != nil || did.Received != 5 {
			t.Errorf("%+v, %v: it was closed while it worked on the fifth", did, err)
		}
		b.finish()
	})
}

// Who has received what it has not begun is at work, though no account expects that, until it has nothing left or is given up.
func TestArrivedWaitsForWhatLoopsLeave(t *testing.T) {
	const each, pause = time.Second, 2 * time.Second
	for limit, received := range map[time.Duration]int64{10 * time.Minute: 20, 500 * time.Millisecond: 1} {
		onBrokers(t, memory.Config{}, func(t *testing.T, b *bench, _ driver.Features) {
			c := b.consumer(driver.ConsumerConfig{Group: "workers"})
			s := b.sender(100)
			s.stamp = StampOff
			b.produce(s, 20)
			ctx, stop := context.WithCancel(t.Context())
			var working sync.WaitGroup
			working.Go(func() {
				for ctx.Err() == nil {
					b.consume(ctx, Consume{Work: each, Duration: each / 2}, c)
					time.Sleep(pause)
				}
			})
			took := b.arrived(limit, Consume{})
			n := b.series.Count(recording.Received)
			stop()
			working.Wait()
			if n != received {
				t.Errorf("%v: %d were received when all had arrived, want %d", limit, n, received)
			}
			if received > 1 {
				between(t, "bounded loops", took, 20*each+19*pause, 20*(each+pause)+time.Second)
			}
			b.finish()
		})
	}
}
