package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
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
	var a result.Account
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

// What is known of a removal is what the broker had when nobody was there to receive it: so much was removed, and what it had no more is lost. What is sent
// after that is accounted for as ever.
func TestWhatAProcessRemovesWhenAllHaveLeft(t *testing.T) {
	for _, c := range []struct {
		name     string
		declared bool // the process that removes knows of the group
		back     bool // somebody comes after that
		want     removals
	}{
		{"the group is known", true, false, removals{expected: 120, received: 40, removed: 55, lost: 5, undelivered: 20}},
		{"somebody comes back", true, true, removals{expected: 120, received: 60, lost: 5, uncertain: 55}},
		{"nobody asks", false, false, removals{expected: 120, received: 40, uncertain: 80}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				one, two := b.sibling("one"), b.sibling("two")
				if c.declared {
					one.topic.Declare("workers", driver.StartNew)
				}
				consumer := two.consumer(driver.ConsumerConfig{Group: "workers"})
				s := one.sender(100)
				one.send(s, 100, time.Second)
				b.steal(5)
				two.work(consumer, 40)
				if err := consumer.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				one.purge()
				time.Sleep(3 * time.Second)
				one.send(s, 20, time.Second)
				if c.back {
					two.work(two.consumer(driver.ConsumerConfig{Group: "workers"}), 20)
				}
				time.Sleep(3 * time.Second)
				parts := []result.Part{one.end(), two.end()}
				r := together(t, result.Siblings{Processes: 2, Backlog: b.backlogNow}, parts...)
				if got := r.removals(t); got != c.want {
					t.Errorf("%+v, want %+v", got, c.want)
				}
				// One that is not here may have received what the broker did not have, and even what it had.
				r = together(t, result.Siblings{Processes: 3, Backlog: b.backlogNow}, parts...)
				if got := r.removals(t); got.removed+got.lost != 0 || got.uncertain < 55 {
					t.Errorf("of three: %+v", got)
				}
			})
		})
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

// What another process has perhaps removed is expected, and lacked without a loss.
func TestWhatAnotherProcessPerhapsRemovedIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.sibling("one"), b.sibling("two")
		s := one.sender(100)
		one.send(s, 100, time.Second)
		time.Sleep(3 * time.Second)
		err := one.run.Settle(t.Context(), one.topic, Drain{Limit: time.Second}, true, func() error {
			return errors.Join(b.conn.(driver.Admin).PurgeTopic(t.Context(), "orders"), context.DeadlineExceeded)
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		c := two.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest})
		one.send(s, 10, time.Second)
		two.work(c, 10)
		r := together(t, result.Siblings{Processes: 2, Backlog: b.backlogNow}, one.end(), two.end())
		if got, want := r.removals(t), (removals{expected: 110, received: 10, uncertain: 100}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// Where the broker keeps nothing for those who are not there, a removal takes nothing from those who have left: what they lack is lost.
func TestARemovalTakesNothingFromThoseWhoHaveLeft(t *testing.T) {
	for left, want := range map[bool]removals{
		true:  {expected: 100, received: 90, lost: 10},
		false: {expected: 100, received: 90, uncertain: 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Transit: func(n int64) time.Duration {
				if n < 90 {
					return 0
				}
				return time.Hour
			}})
			one, two := b.sibling("one"), b.sibling("two")
			c := two.consumer(driver.ConsumerConfig{})
			sender := one.sender(100)
			time.Sleep(2 * time.Second)
			one.send(sender, 100, time.Second)
			two.receive(c, 90)
			time.Sleep(2 * time.Second)
			leave := func() {
				if err := c.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if left {
				leave()
			}
			time.Sleep(3 * time.Second)
			one.purge()
			if !left {
				leave()
			}
			r := together(t, result.Siblings{Processes: 2}, one.end(), two.end())
			if got := r.removals(t); got != want {
				t.Errorf("left %v: %+v, want %+v", left, got, want)
			}
		})
	}
}

// A call that all processes make removes what each had sent before it came to that, whatever their clocks say: no group that comes after it, in whatever process,
// expects any of it, however soon. What is lost after that is lost.
func TestWhatWasRemovedForAllProcessesNoLaterGroupExpects(t *testing.T) {
	const unsure = 30 * time.Millisecond // of how far the clocks are apart, where they were compared
	for _, c := range []struct {
		start driver.Start
		ahead time.Duration // the clock of the one that does not remove
	}{{driver.StartEarliest, 0}, {driver.StartEarliest, 3 * time.Second}, {driver.StartEarliest, -3 * time.Second}, {driver.StartNew, 0}} {
		for member := range 2 { // who has the consumer: the one who removes it for all, or the other one
			t.Run(fmt.Sprintf("%v, %v ahead, consumer in process %d", c.start, c.ahead, member+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, memory.Config{})
					both := []*sibling{b.sibling("one"), b.sibling("two")}
					var senders []*Sender
					var goOn []func()
					for i, s := range both {
						senders = append(senders, s.sender(100))
						s.send(senders[i], 1000, 50*time.Millisecond)
						time.Sleep(time.Millisecond)
						goOn = append(goOn, s.topic.Agree("setup, call 3: purge topic orders"))
					}
					both[0].purge()
					for _, on := range goOn {
						on()
					}
					time.Sleep(time.Millisecond)
					consumer := both[member].consumer(driver.ConsumerConfig{Group: "workers", Start: c.start})
					time.Sleep(2 * unsure)
					for i, s := range both {
						s.send(senders[i], 100, 100*time.Millisecond)
					}
					b.steal(3)
					both[member].work(consumer, 17)
					time.Sleep(2 * time.Second)
					one, two := both[0].end(), both[1].end()
					two.Ledger.Clock = "of another machine"
					shift(two.Ledger, c.ahead)
					one.Result.Peers = []result.Peer{{Process: 2, Instance: two.Result.Instance, Clock: &result.Clock{Least: -int64(unsure), Most: int64(unsure)}}}
					r := together(t, result.Siblings{Processes: 2, Backlog: b.backlogNow}, one, two)
					if got, want := r.removals(t), (removals{expected: 20, received: 17, lost: 3}); got != want {
						t.Errorf("%+v, want %+v", got, want)
					}
				})
			})
		}
	}
}

// shift has a process's ledger say what it would have by a clock that is ahead.
func shift(l *result.Ledger, by time.Duration) {
	l.Ended += int64(by)
	for i := range l.Topics {
		t := &l.Topics[i]
		for k := range t.Agreed {
			t.Agreed[k].From += int64(by)
			t.Agreed[k].Until += int64(by)
		}
		for _, c := range t.Courses {
			for k := range c.Marks {
				c.Marks[k].At += int64(by)
			}
		}
		for k := range t.Groups {
			g := &t.Groups[k]
			for n, p := range g.There {
				g.There[n].From += int64(by)
				if p.Until != math.MaxInt64 {
					g.There[n].Until += int64(by)
				}
			}
			if g.Asked != 0 {
				g.Asked += int64(by)
			}
		}
	}
}
