package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// purge empties the topic in a process.
func (b *bench) purge() {
	b.t.Helper()
	err := b.run.Remove(b.t.Context(), b.topic, Drain{Limit: time.Second}, true, func() error {
		return b.conn.(driver.Admin).PurgeTopic(b.t.Context(), "orders")
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestAccount_AnotherProcessEmptiesTheTopic_MissingUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.sibling("one"), b.sibling("two")
		c := two.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 20})
		s := two.sender(100)
		two.send(s, 100, time.Second)
		two.work(c, 40)
		time.Sleep(2 * time.Second)
		one.purge() // 20 were on their way to the consumer
		time.Sleep(2 * time.Second)
		two.send(s, 10, time.Second)
		r := together(t, verdict.Siblings{Processes: 2}, one.end(), two.end())
		// What the broker has may be some of those that it should have removed.
		if got, want := r.fates(t), (fates{expected: 110, received: 40, uncertain: 70, why: "no-backlog removed"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// Each process empties the topic before it begins. What is lost afterwards is lost.
func TestAccount_EveryProcessEmptiesTheTopicFirst_LossIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.sibling("one"), b.sibling("two")
		one.purge()
		two.purge()
		time.Sleep(2 * time.Second)
		c := two.consumer(driver.ConsumerConfig{Group: "workers"})
		time.Sleep(2 * time.Second)
		one.send(one.sender(100), 100, 3*time.Second)
		b.steal(10)
		two.work(c, 290)
		time.Sleep(2 * time.Second)
		r := together(t, verdict.Siblings{Processes: 2}, one.end(), two.end())
		if got, want := r.fates(t), (fates{expected: 300, received: 290, lost: 10}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
