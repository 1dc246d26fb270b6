package load

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

// arrived is how long a call of Arrived takes, while consumers work.
func (b *bench) arrived(limit time.Duration, loop Consume, consumers ...*Consumer) time.Duration {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	var working sync.WaitGroup
	if len(consumers) > 0 {
		loop, err := loop.Resolve(b.topic.Address.Driver.Features)
		if err != nil {
			b.t.Fatal(err)
		}
		working.Go(func() { _, _ = loop.Run(ctx, consumers) })
	}
	start := time.Now()
	if err := b.run.Arrived(b.t.Context(), limit); err != nil {
		b.t.Error(err)
	}
	took := time.Since(start)
	stop()
	working.Wait()
	return took
}

func between(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: it took %v, want %v to %v", what, got, least, most)
	}
}

// However slow the consumers are, they get everything as long as they get on: a time limit is for those who do not.
func TestArrivedWaitsForSlowConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 1000)
		between(t, "slow", b.arrived(time.Second, Consume{Work: 100 * time.Millisecond}, c), 100*time.Second, 102*time.Second)
		b.finish()
		if a := b.only(); a.Received != 1000 || a.Drained != 0 || a.Settled != 1000 {
			t.Errorf("%+v", a)
		}
	})
}

// Nobody waits for what cannot come: where nothing was sent, where those who were to get it have left, where the broker has no more.
func TestArrivedWaitsForNothingThatCannotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{})
		between(t, "nothing", b.arrived(time.Hour, Consume{}), 0, time.Second)
		leaves := b.consumer(driver.ConsumerConfig{Group: "leaves"})
		stays := b.consumer(driver.ConsumerConfig{Group: "stays"})
		b.produce(b.sender(100), 100)
		if err := leaves.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		between(t, "one has left", b.arrived(time.Hour, Consume{}, stays), 0, time.Second)
		b.produce(b.sender(100), 100)
		if err := b.conn.(driver.Admin).PurgeTopic(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		between(t, "the broker has no more", b.arrived(time.Hour, Consume{}, stays), time.Second, 5*time.Second)
		b.finish()
	})
	synctest.Test(t, func(t *testing.T) {
		f := faulty.Full()
		f.Deliver, f.Settle, f.SettleConfirmed, f.Replay, f.Start = driver.AtMostOnce, 0, driver.Never, false, driver.StartNew
		b := newBench(t, faulty.Config{Features: f, Transit: func(int64) time.Duration { return time.Hour }})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 100)
		between(t, "a broker that keeps nothing", b.arrived(time.Hour, Consume{}, c), time.Second, 5*time.Second)
		b.finish()
	})
}

// Consumers that do not get on are given up after a while, though the broker has more.
func TestArrivedGivesUpThoseWhoStandStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 100)
		between(t, "nobody reads", b.arrived(7*time.Second, Consume{}), 7*time.Second, 8*time.Second)
		b.receive(c, 100)
		c.group.touch(&c.group.settles)
		between(t, "received and not settled", b.arrived(7*time.Second, Consume{}), 7*time.Second, 8*time.Second)
		b.finish()
	})
}
