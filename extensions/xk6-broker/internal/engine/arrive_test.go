package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
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
	b.run.timeout.Store(int64(limit))
	if err := b.run.Arrived(b.t.Context(), func(int64) int64 { return 0 }); err != nil {
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
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 1000)
		between(t, "slow", b.arrived(time.Second, Consume{Work: 100 * time.Millisecond}, c), 100*time.Second, 102*time.Second)
		b.finish()
		if a := b.only(); a.Received != 1000 || a.Drained != 0 || a.Settled != 1000 {
			t.Errorf("%+v", a)
		}
	})
}

// Nobody waits for what cannot come: where nothing was sent, where those who were to get it have left. What
// is on its way to those that the broker keeps nothing for may be late, and is waited for.
func TestArrivedWaitsForNothingThatCannotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
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
		between(t, "the broker has no more", b.arrived(7*time.Second, Consume{}, stays), time.Second, 2*time.Second)
		b.finish()
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: forgetful(), Transit: func(int64) time.Duration { return time.Hour }})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 100)
		between(t, "a broker that keeps nothing", b.arrived(7*time.Second, Consume{}, c), 7*time.Second, 8*time.Second)
		b.finish()
	})
}

// Consumers that do not get on are given up after a while, though the broker has more.
func TestArrivedGivesUpThoseWhoStandStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 100)
		between(t, "nobody reads", b.arrived(7*time.Second, Consume{}), 7*time.Second, 8*time.Second)
		b.receive(c, 100)
		c.group.settles.Store(true)
		between(t, "received and not settled", b.arrived(7*time.Second, Consume{}), 7*time.Second, 8*time.Second)
		b.finish()
	})
}

// Who has received something is at work until it asks for more, however long that takes: it may send on what it got, and what lies in its
// client comes only then.
func TestArrivedWaitsForThoseAtWork(t *testing.T) {
	const each = 2 * time.Second
	keeps, none := memory.Full(), forgetful()
	for name, f := range map[string]driver.Features{"a broker that keeps": keeps, "one that keeps nothing": none} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Features: f})
			c := b.consumer(driver.ConsumerConfig{Group: "workers"})
			b.produce(b.sender(100), 20)
			between(t, name, b.arrived(10*time.Second, Consume{Batch: 1, Work: each}, c), 20*each-time.Second, 20*each+2*time.Second)
			if a := b.only(); a.Received != 20 {
				t.Errorf("%s: %+v", name, a)
			}
			b.finish()
		})
	}
	synctest.Test(t, func(t *testing.T) { // a pipeline, whose first stage settles before it sends on
		b := newBench(t, memory.Config{})
		first := b.consumer(driver.ConsumerConfig{Group: "first"})
		b.produce(b.sender(100), 3)
		second := b.consumer(driver.ConsumerConfig{Group: "second"})
		s := b.sender(100)
		ctx, stop := context.WithCancel(t.Context())
		var stages sync.WaitGroup
		stages.Go(func() {
			for in := NewBuffer(1); ; {
				n, _ := first.Receive(ctx, in)
				if n == 0 {
					return
				}
				first.HandOver(in, n)
				_ = first.Settle(ctx, in, 0, n, driver.Ack)
				if in.Stamps[0].Sequence < 3 && b.series.Count(recording.Sent) < 6 {
					time.Sleep(3 * time.Second)
					b.produce(s, 1)
				}
			}
		})
		stages.Go(func() { _, _ = Consume{Batch: 1, Ack: AckBatch}.Run(ctx, []*Consumer{second}) })
		between(t, "a pipeline", b.arrived(10*time.Second, Consume{}), 9*time.Second, 12*time.Second)
		if n := b.series.Count(recording.Sent); n != 6 {
			t.Errorf("%d messages were sent before all had arrived", n)
		}
		stop()
		stages.Wait()
		b.finish()
	})
}

// A message that nobody settles comes again and again, from a broker that lends it for a while. Who is handed nothing else gets on no more.
func TestArrivedEndsWhereOnlyTheSameComesAgain(t *testing.T) {
	const sent, lease, limit = 50, 2 * time.Second, 7 * time.Second
	for name, c := range map[string]struct {
		features    driver.Features
		work        time.Duration // for each message
		settle      func(c *Consumer, in *Buffer, n, turn int) error
		least, most time.Duration
		settled     uint64
	}{
		// Once more is no going on for ever: what a consumer held that was killed comes so.
		"some are never settled": {memory.Full(), 0, func(c *Consumer, in *Buffer, n, _ int) error {
			return c.Settle(context.Background(), in, 0, max(0, n-10), driver.Ack)
		}, limit, limit + 2*lease, 40},
		"and no attempts are told": {memory.Log(), 0, func(c *Consumer, in *Buffer, n, _ int) error {
			return c.Settle(context.Background(), in, 0, max(0, n-10), driver.Ack)
		}, limit, limit + 2*lease, 40},
		"none is ever settled": {memory.Full(), 0, func(*Consumer, *Buffer, int, int) error { return nil }, limit, limit + 2*lease, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Features: c.features})
			member := b.consumer(driver.ConsumerConfig{Group: "workers"})
			b.produce(b.sender(100), sent)
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
			defer stop()
			var reopens atomic.Bool // which is work, as an executor says it
			var working sync.WaitGroup
			working.Go(func() {
				for turn := 0; ctx.Err() == nil; turn++ { // what a consumer has when it closes comes again, as when its lease is over
					in := NewBuffer(sent)
					n, err := member.Receive(ctx, in)
					for i := range n {
						time.Sleep(c.work)
						member.HandOver(in, i+1)
					}
					if err = errors.Join(err, c.settle(member, in, n, turn)); err != nil {
						t.Error(err)
					}
					_ = machine.Timer(ctx, driver.Now()+int64(lease))
					reopens.Store(true)
					_ = member.Close(t.Context())
					member = b.consumer(driver.ConsumerConfig{Group: "workers"})
					reopens.Store(false)
				}
			})
			b.run.timeout.Store(int64(limit))
			start := time.Now()
			if err := b.run.Arrived(ctx, func(now int64) int64 {
				if reopens.Load() {
					return now
				}
				return 0
			}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			between(t, name, time.Since(start), c.least, c.most)
			stop()
			working.Wait()
			b.finish()
			if a := b.only(); a.Received != sent || a.Settled != c.settled || a.Lost != 0 {
				t.Errorf("%s: %+v", name, a)
			}
		})
	}
}

// What is in no account arrives too: messages without a stamp are awaited as long as the broker has more of them.
func TestArrivedWaitsForWhatIsInNoAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 1})
		s := b.sender(1000)
		s.stamp = StampOff
		b.produce(s, 50)
		between(t, "without stamps", b.arrived(10*time.Second, Consume{Batch: 1, Work: time.Second}, c), 50*time.Second, 53*time.Second)
		if n := b.series.Count(recording.Received); n != 50 {
			t.Errorf("%d were received", n)
		}
		b.finish()
	})
}

// A consumer that the script closes comes back, perhaps: what waits for it is awaited for a while.
func TestArrivedWaitsForConsumersThatComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 50)
		var working sync.WaitGroup
		working.Go(func() {
			for got := uint64(0); got < 50; {
				r, _ := Consume{Batch: 10, Count: 10, Ack: AckBatch}.Run(t.Context(), []*Consumer{c})
				got += r.Received
				_ = c.Close(t.Context())
				time.Sleep(3 * time.Second)
				c = b.consumer(driver.ConsumerConfig{Group: "workers"})
			}
		})
		between(t, "closed and opened again", b.arrived(10*time.Second, Consume{}), 12*time.Second, 14*time.Second)
		working.Wait()
		b.finish()
		if a := b.only(); a.Received != 50 || a.Drained != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// forgetful are the features of a broker that keeps nothing for those who are not there.
func forgetful() driver.Features {
	f := memory.Full()
	f.Deliver, f.Settle, f.SettleConfirmed, f.Replay, f.Start = driver.AtMostOnce, 0, driver.Never, false, driver.StartNew
	return f
}

// Who sends after the consumers were told that there is no more sends to nobody, where the broker keeps nothing: no account expects that, and
// a note counts it.
func TestWhatIsSentAfterTheConsumersHaveEnded(t *testing.T) {
	for name, keeps := range map[string]bool{"a broker that keeps": true, "one that keeps nothing": false} {
		synctest.Test(t, func(t *testing.T) {
			config, loop := memory.Config{Features: forgetful()}, Consume{}
			if keeps {
				config.Features, loop.Ack = memory.Full(), AckBatch
			}
			b := newBench(t, config)
			collector := b.run.NewCollector()
			c := b.consumer(driver.ConsumerConfig{Group: "workers"})
			s := b.sender(100)
			b.produce(s, 100)
			b.arrived(time.Second, loop, c)
			if err := c.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.produce(s, 20)
			b.finish()
			r := collector.Result()
			verdict.Judge(r, verdict.Circumstances{})
			says := reasontest.Has(r.Verdict.Notes(), "no-consumer why=away topic=orders count=20")
			if r.Verdict.Valid == keeps || says == keeps {
				t.Errorf("%s: %q", name, reasontest.Codes(r.Verdict.Reasons))
			}
		})
	}
}

// What was sent before the first consumer came is in no account, and a note says how much that was.
func TestWhatIsSentBeforeTheConsumersCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: forgetful()})
		collector := b.run.NewCollector()
		s := b.sender(100)
		b.produce(s, 30)
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(s, 70)
		b.receive(c, 70)
		b.finish()
		r := collector.Result()
		verdict.Judge(r, verdict.Circumstances{})
		if !r.Verdict.Valid || !reasontest.Has(r.Verdict.Notes(), "no-consumer why=away count=30") {
			t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
		}
	})
}

// Messages that are late are not lost: the last one to leave waits for them as long as the test was asked to wait, however its time ended.
func TestTheLastToLeaveWaitsForWhatIsLate(t *testing.T) {
	for patience, uncertain := range map[time.Duration]uint64{0: 0, 3 * time.Second: 100} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Features: forgetful(), Transit: func(int64) time.Duration { return 4 * time.Second }})
			if patience > 0 {
				b.run.SetDrainTimeout(patience)
				b.run.SetDrainTimeout(time.Second) // another connection's is shorter
			}
			c := b.consumer(driver.ConsumerConfig{Group: "workers"})
			b.produce(b.sender(100), 100)
			if err := c.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a := b.only(); a.Lost != 0 || a.Why[account.Leaving] != uncertain || a.Drained != 100-uncertain {
				t.Errorf("patience %v: %+v", patience, a)
			}
			b.finish()
		})
	}
}
