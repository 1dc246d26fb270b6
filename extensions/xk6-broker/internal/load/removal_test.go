package load

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// mute is a broker that does not tell what it has for a group.
type mute struct {
	driver.Conn
	driver.Admin
}

// slowly is a broker that confirms 10 s after it has stored.
type slowly struct {
	driver.Conn
	driver.Backlogger
}

func (s slowly) NewProducer(ctx context.Context, c driver.ProducerConfig) (driver.Producer, error) {
	p, err := s.Conn.NewProducer(ctx, c)
	return slowProducer{p}, err
}

type slowProducer struct{ driver.Producer }

func (p slowProducer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	p.Producer.Send(ctx, b, func(i int, err error) { time.AfterFunc(10*time.Second, func() { done(i, err) }) })
}

// A test that deletes or empties a topic has removed what the broker had then, and nothing that the broker had lost before.
func TestWhatWasLostBeforeTheTestRemovedTheRestIsLost(t *testing.T) {
	for _, c := range []struct {
		present, tells                    bool
		lost, drained, removed, uncertain uint64
	}{
		{present: true, tells: true, uncertain: 3, removed: 147}, // what was on its way may be in no backlog
		{present: true, uncertain: 150},
		{tells: true, lost: 3, drained: 147},
		{uncertain: 3, drained: 147},
	} {
		t.Run(fmt.Sprintf("present %v, tells %v", c.present, c.tells), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				tells := b.conn
				admin := b.conn.(driver.Admin)
				if !c.tells {
					b.conn = mute{b.conn, admin}
				}
				consumer := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 60})
				b.produce(b.sender(1000), 200)
				b.settle(consumer, b.receive(consumer, 50), 0, 50, driver.Ack)
				if !c.present {
					if err := consumer.Leave(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				mine := b.conn
				b.conn = tells
				b.steal(3)
				b.conn = mine
				if err := b.run.Settle(t.Context(), b.topic, Drain{Limit: time.Minute}, false, func() error { return admin.PurgeTopic(t.Context(), "orders") }); err != nil {
					t.Fatal(err)
				}
				b.finish()
				a := b.only()
				if a.Received != 50 || a.Lost != c.lost || a.Drained != c.drained || a.Removed != c.removed || a.Uncertain != c.uncertain {
					t.Errorf("%+v, want %+v", a, c)
				}
				if a.Expected != a.Received+a.Drained+a.Removed+a.Missing || a.Missing != a.Lost+a.Undelivered+a.Uncertain {
					t.Errorf("it does not add up: %+v", a)
				}
			})
		})
	}
}

// own is a broker that tells of a connection's own messages only.
type own struct {
	driver.Conn
	driver.Admin

	messages int64
}

func (o *own) Backlog(context.Context, string, string) (driver.Backlog, error) {
	return driver.Backlog{Messages: o.messages}, nil
}

// What the broker had is asked by the connections of those who consume.
func TestWhoIsAskedWhatTheBrokerHad(t *testing.T) {
	for _, c := range []struct {
		members            []int64 // what the connection of each says
		removed, uncertain uint64
	}{
		{[]int64{100}, 100, 0},
		{[]int64{70}, 70, 30},
		{[]int64{100, 100}, 0, 100}, // which has what nobody knows
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			plain, admin := b.conn, b.conn.(driver.Admin)
			conns := make([]*own, len(c.members))
			for i := range conns {
				conns[i] = &own{plain, admin, 0}
				b.conn = conns[i]
				b.consumer(driver.ConsumerConfig{Group: "workers"})
			}
			b.conn = &own{plain, admin, 0}
			b.produce(b.sender(1000), 100)
			for i, messages := range c.members {
				conns[i].messages = messages
			}
			if err := b.run.Settle(t.Context(), b.topic, Drain{Limit: time.Minute}, false, func() error { return admin.PurgeTopic(t.Context(), "orders") }); err != nil {
				t.Fatal(err)
			}
			b.finish()
			if a := b.only(); a.Lost != 0 || a.Removed != c.removed || a.Uncertain != c.uncertain {
				t.Errorf("%v: %+v", c.members, a)
			}
		})
	}
}

// What is under way while the test empties the topic, and is confirmed after that, the broker may have had: it is not lost.
func TestWhatIsConfirmedAfterTheTestRemovedItIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		admin := b.conn.(driver.Admin)
		b.conn = slowly{b.conn, b.conn.(driver.Backlogger)}
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		s := b.sender(1000)
		s.Send(t.Context(), driver.Batch{{}}, Timing{}, func([]Receipt) {})
		b.settle(c, b.receive(c, 1), 0, 1, driver.Ack)
		s.Send(t.Context(), driver.Batch{{}}, Timing{}, func([]Receipt) {})
		synctest.Wait()
		if err := b.run.Settle(t.Context(), b.topic, Drain{Limit: time.Second}, false, func() error { return admin.PurgeTopic(t.Context(), "orders") }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.finish()
		if a := b.only(); a.Expected != 2 || a.Lost != 0 || a.Removed+a.Uncertain != 1 {
			t.Errorf("%+v", a)
		}
	})
}

// What the test removed before a group came is nobody's loss: not of one that expects everything, be the topic deleted and made again or emptied, and
// had others received some of it. What is lost afterwards is.
func TestAGroupExpectsNothingOfWhatWasRemovedBeforeItCame(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprintf("deleted %v, others %v", deleted, others), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, memory.Config{})
					admin := b.conn.(driver.Admin)
					b.topic.Declare("workers", driver.StartEarliest)
					s := b.sender(1000)
					if others {
						c := b.consumer(driver.ConsumerConfig{Group: "warm"})
						b.produce(s, 50)
						b.settle(c, b.receive(c, 20), 0, 20, driver.Ack)
					} else {
						b.produce(s, 50)
					}
					if err := b.run.Settle(t.Context(), b.topic, Drain{Limit: time.Second}, !deleted, func() error {
						if !deleted {
							return admin.PurgeTopic(t.Context(), "orders")
						}
						return errors.Join(admin.DeleteTopic(t.Context(), "orders"),
							admin.CreateTopic(t.Context(), driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 1}))
					}); err != nil {
						t.Fatal(err)
					}
					s = b.sender(1000)
					b.produce(s, 7)
					var now interval
					if b.topic.queues(&now); !others && now.outstanding != 7 {
						t.Errorf("%d are outstanding", now.outstanding)
					}
					c := b.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest})
					b.settle(c, b.receive(c, 7), 0, 7, driver.Ack)
					b.produce(s, 3)
					if err := c.Leave(t.Context()); err != nil {
						t.Fatal(err)
					}
					b.steal(3)
					b.finish()
					accounts := b.topic.accounts()
					if a := accounts[len(accounts)-1]; a.Expected != 10 || a.Received != 7 || a.Lost != 3 || a.Removed+a.Uncertain != 0 {
						t.Errorf("%+v", a)
					}
				})
			})
		}
	}
}

// A group whose topic the test deletes while nobody of it is there has lost its place: when it comes again it begins with what is new, and expects no more.
func TestAGroupIsForgottenWithItsTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		admin := b.conn.(driver.Admin)
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		s := b.sender(1000)
		b.produce(s, 50)
		b.settle(c, b.receive(c, 50), 0, 50, driver.Ack)
		if err := c.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.run.Settle(t.Context(), b.topic, Drain{Limit: time.Second}, false, func() error {
			return errors.Join(admin.DeleteTopic(t.Context(), "orders"),
				admin.CreateTopic(t.Context(), driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 1}))
		}); err != nil {
			t.Fatal(err)
		}
		s = b.sender(1000)
		b.produce(s, 100)
		c = b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(s, 10)
		b.settle(c, b.receive(c, 7), 0, 7, driver.Ack)
		if err := c.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.steal(3)
		b.finish()
		if a := b.topic.accounts()[0]; a.Expected != 60 || a.Received != 57 || a.Lost != 3 || a.Removed+a.Uncertain != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// What was on its way while the test emptied the topic, and comes to a group that was made after that, has been received, and was never expected.
func TestWhatCameThroughARemovalIsNoStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		admin := b.conn.(driver.Admin)
		s := b.sender(1000)
		b.produce(s, 5)
		if err := b.run.Settle(t.Context(), b.topic, Drain{Limit: time.Second}, true, func() error {
			err := admin.PurgeTopic(t.Context(), "orders")
			b.produce(s, 2)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		b.produce(s, 10)
		c := b.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest})
		b.settle(c, b.receive(c, 12), 0, 12, driver.Ack)
		b.finish()
		if a := b.only(); a.Expected != 10 || a.Received != 12 || a.Unexpected != 2 || a.Foreign != 0 || a.Missing+a.Removed != 0 || b.topic.strangers()["workers"] != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// alias makes the topic known to the run by another address, at which somebody consumes or not.
func (b *bench) alias() *Topic {
	b.t.Helper()
	address, err := driver.ParseURL(b.topic.Address.Driver.Schemes[0]+"://alias", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.run.Topic(address, "orders")
}

// What the test removes by another address of the broker is not lost: the broker had it, and has it no more. What it had not is lost, as ever, and another
// broker's topic of that name, which has all that it had, has nothing removed.
func TestWhatIsRemovedAtAnotherAddressIsNotLost(t *testing.T) {
	for _, c := range []struct {
		name           string
		present, tells bool
		same           bool // it is the same broker
		want           result.Account
	}{
		{"nobody is there", false, true, true, result.Account{Lost: 3, Tally: track.Tally{Removed: 147}}},
		{"somebody is there", true, true, true, result.Account{Uncertain: 3, Tally: track.Tally{Removed: 147}}},
		{"the broker does not tell", true, false, true, result.Account{Uncertain: 150}},
		{"it is another broker", false, true, false, result.Account{Lost: 3, Tally: track.Tally{Drained: 147}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				plain, admin := b.conn, b.conn.(driver.Admin)
				if !c.tells {
					b.conn = mute{b.conn, admin}
				}
				consumer := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 60})
				b.produce(b.sender(1000), 200)
				b.settle(consumer, b.receive(consumer, 50), 0, 50, driver.Ack)
				if !c.present {
					if err := consumer.Leave(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				mine := b.conn
				b.conn = plain
				b.steal(3)
				b.conn = mine
				if err := b.run.Settle(t.Context(), b.alias(), Drain{Limit: time.Minute}, true, func() error {
					if !c.same {
						return nil
					}
					return admin.PurgeTopic(t.Context(), "orders")
				}); err != nil {
					t.Fatal(err)
				}
				b.finish()
				a := b.only()
				if a.Received != 50 || a.Lost != c.want.Lost || a.Drained != c.want.Drained || a.Removed != c.want.Removed || a.Uncertain != c.want.Uncertain {
					t.Errorf("%+v, want %+v", a, c.want)
				}
			})
		})
	}
}

// A group that comes after the test may have emptied the topic expects what was sent before, and lacks it without a loss.
func TestWhatWasPerhapsRemovedBeforeAGroupCameIsUncertain(t *testing.T) {
	for _, alias := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			s := b.sender(1000)
			b.produce(s, 50)
			at, fails := b.topic, context.DeadlineExceeded // nobody knows whether it did it
			if alias {
				at, fails = b.alias(), nil
			}
			err := b.run.Settle(t.Context(), at, Drain{Limit: time.Second}, true, func() error {
				return errors.Join(b.conn.(driver.Admin).PurgeTopic(t.Context(), "orders"), fails)
			})
			if !errors.Is(err, fails) {
				t.Fatal(err)
			}
			c := b.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest})
			b.produce(s, 10)
			b.settle(c, b.receive(c, 10), 0, 10, driver.Ack)
			b.finish()
			if a := b.only(); a.Expected != 60 || a.Received != 10 || a.Uncertain != 50 || a.Lost+a.Removed != 0 {
				t.Errorf("alias %v: %+v", alias, a)
			}
		})
	}
}

// A removal that the broker refuses takes nothing.
func TestARefusedRemovalTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(1000), 10)
		b.settle(c, b.receive(c, 4), 0, 4, driver.Ack)
		if err := c.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.steal(6)
		denied := &driver.Error{Kind: driver.Denied, Err: errors.New("no")}
		if err := b.run.Settle(t.Context(), b.topic, Drain{Limit: time.Second}, true, func() error { return denied }); !errors.Is(err, denied) {
			t.Fatal(err)
		}
		b.finish()
		if a := b.only(); a.Lost != 6 || a.Removed+a.Uncertain != 0 {
			t.Errorf("%+v", a)
		}
	})
}
