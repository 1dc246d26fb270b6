package load

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// purge empties the topic in a process.
func (b *bench) purge() {
	b.t.Helper()
	err := b.run.Settle(b.t.Context(), b.topic, Drain{Limit: time.Second}, true, func() error {
		return b.conn.(driver.Admin).PurgeTopic(b.t.Context(), "orders")
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// removals are the fates of a group whose messages were removed by some process.
type removals struct{ expected, received, removed, lost, undelivered, uncertain uint64 }

func (r told) removals(t *testing.T) removals {
	t.Helper()
	f := r.fates(t) // there is one group
	var a account.Account
	for _, topic := range r.Topics {
		for _, g := range topic.Groups {
			a = g.Account
		}
	}
	if a.Expected+a.Unexpected != a.Received+a.Drained+a.Removed+a.Missing || a.Missing != a.Lost+a.Undelivered+a.Uncertain+a.Elsewhere {
		t.Errorf("it does not add up: %+v", a)
	}
	return removals{f.expected, f.received, a.Removed, f.lost, f.undelivered, f.uncertain}
}

// What one process removes while another consumes was perhaps on its way there: of what is missing then nobody knows what was lost and what removed, had the
// one who removed it members in the group or none. What is sent and lost long after that is lost, whoever sent it.
func TestWhatAProcessRemovesWhileOthersConsumeIsUncertain(t *testing.T) {
	for _, member := range []bool{false, true} {
		for _, stolen := range []int{0, 5} {
			t.Run(fmt.Sprintf("member %v, stolen %d", member, stolen), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, memory.Config{})
					one, two := b.sibling("one"), b.sibling("two")
					if one.topic.Declare("workers", driver.StartNew); member {
						one.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 1})
					}
					c := two.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 20})
					mine, its := one.sender(100), two.sender(100)
					one.send(mine, 100, time.Second)
					two.send(its, 100, time.Second)
					two.work(c, 40)
					b.steal(stolen)
					time.Sleep(2 * time.Second)
					one.purge()
					time.Sleep(2 * time.Second)
					one.send(mine, 10, time.Second)
					two.send(its, 10, time.Second)
					b.steal(7)
					time.Sleep(2 * time.Second)
					first := one.end()
					second := two.end()
					r := together(t, result.Siblings{Processes: 2, Backlog: b.backlogNow}, first, second)
					a := r.removals(t)
					if a.expected != 220 || a.received != 40 || a.removed != 0 || a.lost > 7 || a.uncertain < 150 {
						t.Errorf("%+v", a)
					}
				})
			})
		}
	}
}

// Each process empties the topic before it begins. What is lost afterwards is lost.
func TestWhatIsSentAfterAllHaveEmptiedTheTopicIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.sibling("one"), b.sibling("two")
		one.purge()
		two.purge()
		c := two.consumer(driver.ConsumerConfig{Group: "workers"})
		s := one.sender(100)
		one.send(s, 100, 3*time.Second)
		b.steal(10)
		two.work(c, 290)
		time.Sleep(2 * time.Second)
		r := together(t, result.Siblings{Processes: 2}, one.end(), two.end())
		if got, want := r.removals(t), (removals{expected: 300, received: 290, lost: 10}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// A group that comes when another process has emptied the topic expects nothing of what was sent before that, though it begins with the earliest.
func TestAGroupExpectsNothingOfWhatAnotherProcessRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.sibling("one"), b.sibling("two")
		s, its := one.sender(100), two.sender(100)
		one.send(s, 100, time.Second)
		two.send(its, 100, time.Second)
		time.Sleep(3 * time.Second)
		one.purge()
		time.Sleep(3 * time.Second)
		c := two.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest})
		one.send(s, 10, time.Second)
		two.work(c, 10)
		r := together(t, result.Siblings{Processes: 2}, one.end(), two.end())
		if got, want := r.removals(t), (removals{expected: 10, received: 10}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
