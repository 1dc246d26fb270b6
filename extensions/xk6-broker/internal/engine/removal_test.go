package engine

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// What the test removed before a group came is nobody's loss: not of one that expects everything, be the topic deleted and made again or emptied, and
// had others received some of it. What is lost afterwards is.
func TestAGroupExpectsNothingOfWhatWasRemovedBeforeItCame(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprintf("deleted %v, others %v", deleted, others), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, memory.Config{})
					admin := b.conn.(driver.Admin)
					b.topic.Declare()
					s := b.sender(1000)
					if others {
						c := b.consumer(driver.ConsumerConfig{Group: "warm"})
						b.produce(s, 50)
						b.settle(c, b.receive(c, 20), 0, 20, driver.Ack)
					} else {
						b.produce(s, 50)
					}
					if err := b.run.Remove(t.Context(), b.topic, Drain{Limit: time.Second}, !deleted, func() error {
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
					c := b.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest})
					b.settle(c, b.receive(c, 7), 0, 7, driver.Ack)
					b.produce(s, 3)
					if err := c.Leave(t.Context()); err != nil {
						t.Fatal(err)
					}
					b.steal(3)
					b.finish()
					accounts := b.accounts()
					if a := accounts[len(accounts)-1]; a.Group != "workers" || a.Expected != 10 || a.Received != 7 || a.Lost != 3 || a.Uncertain != 0 {
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
		if err := b.run.Remove(t.Context(), b.topic, Drain{Limit: time.Second}, false, func() error {
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
		if a := b.accounts()[0]; a.Expected != 60 || a.Received != 57 || a.Lost != 3 || a.Uncertain != 0 {
			t.Errorf("%+v", a)
		}
	})
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
		if err := b.run.Remove(t.Context(), b.topic, Drain{Limit: time.Second}, true, func() error { return denied }); !errors.Is(err, denied) {
			t.Fatal(err)
		}
		b.finish()
		if a := b.only(); a.Lost != 6 || a.Uncertain != 0 {
			t.Errorf("%+v", a)
		}
	})
}
