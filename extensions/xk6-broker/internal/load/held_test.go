package load

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// whatIsThere runs a test on brokers that tell what they never delivered and on brokers that do not. What then is missing, and the broker has, is
// undelivered, or it cannot be known.
func whatIsThere(t *testing.T, c memory.Config, test func(t *testing.T, b *bench), undelivered, uncertain uint64) {
	t.Helper()
	for _, coarse := range []bool{false, true} {
		t.Run(fmt.Sprintf("coarse %v", coarse), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.Coarse = coarse
				b := newBench(t, c)
				test(t, b)
				a := b.only()
				want := result.Account{Undelivered: undelivered + uncertain}
				if coarse {
					want = result.Account{Undelivered: undelivered, Uncertain: uncertain}
				}
				if a.Lost != 0 || a.Undelivered != want.Undelivered || a.Uncertain != want.Uncertain {
					t.Errorf("lost %d, undelivered %d, uncertain %d; want 0, %d, %d", a.Lost, a.Undelivered, a.Uncertain, want.Undelivered, want.Uncertain)
				}
			})
		})
	}
}

func (b *bench) settle(c *Consumer, in *Buffer, from, to int, o driver.Outcome) {
	b.t.Helper()
	if err := c.Settle(b.t.Context(), in, from, to, o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) close(c *Consumer) {
	b.t.Helper()
	if err := c.Close(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func TestWhatTheBrokerSettlesByItselfIsNotHeld(t *testing.T) {
	whatIsThere(t, memory.Config{Cumulative: true}, func(_ *testing.T, b *bench) {
		c, s := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.sender(1000)
		b.produce(s, 600)
		b.settle(c, b.receive(c, 600), 599, 600, driver.Ack)
		b.close(c)
		b.produce(s, 3)
		b.finish()
	}, 0, 3)
}

func TestWhatTheBrokerGivesUpIsNotHeld(t *testing.T) {
	whatIsThere(t, memory.Config{Deliveries: 3}, func(_ *testing.T, b *bench) {
		c, s := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.sender(1000)
		b.produce(s, 60)
		for range 3 {
			b.settle(c, b.receive(c, 60), 0, 60, driver.Requeue)
		}
		b.close(c)
		b.produce(s, 3)
		b.finish()
	}, 0, 3)
}

// Only what was given back is in doubt, and not what is held beside it.
func TestWhatIsGivenUpLeavesNoMoreDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Deliveries: 2, Coarse: true})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(1000), 600)
		for range 2 {
			b.settle(c, b.receive(c, 10), 0, 10, driver.Requeue)
		}
		b.receive(c, 90) // and these come back once, when their consumer leaves
		b.steal(300)
		b.close(c)
		b.finish()
		if a := b.only(); a.Missing != 500 || a.Lost != 300 || a.Undelivered != 190 || a.Uncertain != 10 {
			t.Errorf("%+v", a)
		}
	})
}

func TestAStrangerThatWasGivenBackIsNotHeldForEver(t *testing.T) {
	whatIsThere(t, memory.Config{}, func(t *testing.T, b *bench) {
		c, s := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.sender(1000)
		pub, err := b.run.NewPublisher(t.Context(), b.conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: 100})
		if err != nil {
			t.Fatal(err)
		}
		b.produce(pub.NewSender(StampOff, b.series), 5)
		b.settle(c, b.receive(c, 5), 0, 5, driver.Requeue)
		b.settle(c, b.receive(c, 5), 0, 5, driver.Ack)
		b.close(c)
		b.produce(s, 3)
		b.finish()
	}, 0, 3)
}

// Some were settled before the call failed.
func TestWhatAFailedSettlementSettledIsNotHeld(t *testing.T) {
	whatIsThere(t, memory.Config{}, func(t *testing.T, b *bench) {
		c, s := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.sender(1000)
		b.produce(s, 10)
		in := b.receive(c, 10)
		b.settle(c, in, 0, 5, driver.Ack)
		if err := c.Settle(t.Context(), in, 0, 10, driver.Ack); err == nil {
			t.Error("settled twice")
		}
		b.close(c)
		b.produce(s, 3)
		b.finish()
	}, 0, 3)
}

func TestWhatWasRemovedIsNotHeld(t *testing.T) {
	whatIsThere(t, memory.Config{}, func(t *testing.T, b *bench) {
		c, s := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.sender(1000)
		b.produce(s, 100)
		b.receive(c, 100)
		if err := c.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.run.Settle(t.Context(), b.topic, Drain{Limit: time.Second}, true, func() error { b.steal(100); return nil }); err != nil {
			t.Fatal(err)
		}
		b.produce(s, 3)
		b.finish()
	}, 0, 3)
}

// The end reads, and settles, what was held; what it could not read in time the broker still has.
func TestWhatTheEndSettlesIsHeldNoMore(t *testing.T) {
	late := func(n int64) time.Duration {
		if n < 100 {
			return 0
		}
		return time.Hour
	}
	whatIsThere(t, memory.Config{Transit: late}, func(t *testing.T, b *bench) {
		c, s := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.sender(1000)
		b.produce(s, 110)
		b.settle(c, b.receive(c, 100), 0, 1, driver.Ack)
		if err := c.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.finish()
	}, 10, 0)
}

// The processes of a test put together what each of them knows of what is held.
func TestWhatABrokerIsDoneWithHidesNothingFromTheWhole(t *testing.T) {
	for _, c := range []struct {
		name   string
		config memory.Config
		want   fates
	}{
		{"gives up", memory.Config{Deliveries: 1}, fates{expected: 203, received: 200, undelivered: 3}},
		{"gives up and tells nothing", memory.Config{Deliveries: 1, Coarse: true}, fates{expected: 203, received: 200, uncertain: 3}},
		{"settles and tells nothing", memory.Config{Cumulative: true, Coarse: true}, fates{expected: 203, received: 200, uncertain: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.config)
				one, two := b.sibling("one"), b.sibling("two")
				consumer := one.consumer(driver.ConsumerConfig{Group: "workers"})
				s := two.sender(1000)
				two.produce(s, 200)
				in := one.receive(consumer, 200)
				if c.config.Cumulative {
					one.settle(consumer, in, 199, 200, driver.Ack)
				} else {
					one.settle(consumer, in, 0, 200, driver.Requeue)
				}
				one.close(consumer)
				two.produce(s, 3)
				time.Sleep(time.Second)
				parts := []result.Part{one.end(), two.end()}
				if got := together(t, result.Siblings{Processes: 2, Backlog: b.backlogNow}, parts...).fates(t); got != c.want {
					t.Errorf("%+v, want %+v", got, c.want)
				}
			})
		})
	}
}

// Where the broker is done with what it has delivered, what lay in the client of one who has left is neither with the broker nor lost by it:
// of what is missing then nobody can tell.
func TestWhatLayInTheClientOfOneWhoLeftIsNotCalledLost(t *testing.T) {
	g := &group{topic: &Topic{track: track.NewTopic()}, kept: true}
	producer := g.topic.track.Producer(1)
	g.track = g.topic.track.Group("workers", track.New)
	g.track.Ready()
	producer.Next()
	producer.ExpectN(0, 1)
	g.backlog.Store(&backlog{known: true})
	if a := g.accounting(); a.Lost != 1 || a.Uncertain != 0 {
		t.Errorf("a broker that holds what is not settled, and has nothing: %+v", a)
	}
	g.unheld.Store(true)
	if a := g.accounting(); a.Lost != 0 || a.Uncertain != 1 {
		t.Errorf("a broker that is done with what it has delivered: %+v", a)
	}
}

// TestAnEstimateMakesNothingLost takes messages from the broker and leaves others there: by a number that is an estimate nobody knows which.
func TestAnEstimateMakesNothingLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := memory.Full()
		f.BacklogEstimated = true
		b := newBench(t, memory.Config{Features: f})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(1000), 600)
		b.receive(c, 100)
		b.steal(300)
		b.close(c)
		if backlogs := b.run.Backlogs(t.Context()); len(backlogs) != 1 {
			t.Errorf("backlogs %v: an estimate is told", backlogs)
		}
		b.finish()
		if a := b.only(); a.Missing != 500 || a.Uncertain != 500 || a.Lost != 0 || a.Undelivered != 0 {
			t.Errorf("%+v", a)
		}
		if l := b.topic.ledger().Groups[0]; l.Asked != 0 {
			t.Errorf("who merges is told that the broker said %+v", l.Backlog)
		}
	})
}
