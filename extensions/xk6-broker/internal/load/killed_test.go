package load

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// What a process had received and not acknowledged when it was killed is accounted for by what became of it: it came again, or the broker has it. Else nobody
// knows: it may have acknowledged it after it had told, though it had acknowledged nothing until then.
func TestWhatAKilledProcessHad(t *testing.T) {
	for name, c := range map[string]struct {
		settled     int  // by it, of the 300 that it received
		forgotten   bool // by the broker, all others
		again       int  // received by another process
		redelivered uint64
		want        result.Account
	}{
		"comes again":                          {again: 300, redelivered: 300},
		"half of it comes again":               {again: 150, redelivered: 150, want: result.Account{Undelivered: 150}},
		"is at the broker":                     {want: result.Account{Undelivered: 300}},
		"was acknowledged, as nobody can tell": {forgotten: true, want: result.Account{Elsewhere: 300}},
		"was acknowledged, some in time":       {settled: 10, forgotten: true, want: result.Account{Elsewhere: 290}},
		"comes, but for what it acknowledged":  {settled: 10, again: 290, redelivered: 290},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				killed, alive := b.sibling("killed"), b.sibling("alive")
				reading := killed.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 300, Start: driver.StartEarliest})
				alive.send(alive.sender(100), 300, time.Second)
				in := killed.receive(reading, 300)
				if c.settled > 0 {
					killed.settle(reading, in, 0, c.settled, driver.Ack)
				}
				left := killed.part("killed", killed.collector)
				left.Ledger.Unfinished = true
				if c.forgotten {
					killed.settle(reading, in, c.settled, 300, driver.Ack)
				}
				killed.close(reading) // the broker sees that it is gone
				parts := []result.Part{left, {}}
				if c.again > 0 {
					other := alive.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: c.again, Start: driver.StartEarliest})
					alive.work(other, c.again)
					alive.close(other)
				}
				parts[1] = alive.end()
				whole := together(t, result.Siblings{Processes: 2, Backlog: b.backlogNow}, parts...)
				a := whole.Topics[0].Groups[0].Account
				if a.Expected != 300 || a.Lost != c.want.Lost || a.Undelivered != c.want.Undelivered || a.Elsewhere != c.want.Elsewhere || a.Redelivered != c.redelivered || a.Duplicated != 0 {
					t.Errorf("%+v", a)
				}
				if notes := strings.Join(whole.Verdict.Notes, "\n"); !strings.Contains(notes, "process 1 (killed) was killed") {
					t.Errorf("notes:\n%s", notes)
				}
				killed.end()
				if err := b.conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Where the broker keeps nothing for those who are not there, a process that was killed is known to have been there until it told for the last time: what others
// sent later is not expected of its subscriber. What had been sent, and may have come after that, is elsewhere, and so is what others of its group did not get
// of what was sent later. What would have come before is lost.
func TestWhatAKilledProcessHeard(t *testing.T) {
	const told, transit = 5005 * time.Millisecond, 20 * time.Millisecond
	for name, c := range map[string]struct {
		group    string
		reads    time.Duration // for so long it receives what comes
		expected uint64        // of the 1000 that the other process sends, one each 10 ms, and 101 of the killed one's own, one each 50 ms
	}{
		"a subscriber":                     {reads: told, expected: 1000 + 101 + 501 + 101},
		"a subscriber that is behind":      {reads: 3 * time.Second, expected: 1000 + 101 + 501 + 101},
		"a member of a group that goes on": {group: "workers", reads: told + time.Second, expected: 1000 + 101},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				features := memory.Subject()
				features.Groups = true
				b := newBench(t, memory.Config{Features: features, Transit: func(int64) time.Duration { return transit }})
				killed, alive := b.sibling("killed"), b.sibling("alive")
				mine, others := killed.consumer(driver.ConsumerConfig{Group: c.group}), alive.consumer(driver.ConsumerConfig{Group: c.group})
				var kept, came atomic.Int64
				mine.consumer = lossy{mine.consumer, func(driver.Message) bool {
					if n := came.Add(1); n == 50 || n == 60 {
						return true
					}
					kept.Add(1)
					return false
				}}
				var sending, hearing sync.WaitGroup
				sending.Go(func() { killed.send(killed.sender(100), 20, 10*time.Second) })
				sending.Go(func() { alive.send(alive.sender(100), 100, 10*time.Second) })
				hearing.Go(func() { killed.hear(mine, c.reads) })
				hearing.Go(func() { alive.hear(others, 11*time.Second) })
				time.Sleep(told)
				left := killed.part("killed", killed.collector)
				left.Ledger.Unfinished = true
				heard := uint64(kept.Load())
				sending.Wait()
				hearing.Wait()
				end := alive.end()
				whole := together(t, result.Siblings{Processes: 2}, left, end)
				g := whole.Topics[0].Groups[0]
				never := g.Expected - 1000 - 101 - heard // by its subscriber
				if c.group != "" {
					never = 1000 + 101 - heard - expectedOf(end, left)
				}
				if g.Expected != c.expected || g.Lost != 2 || g.Elsewhere != never-2 || g.Elsewhere == 0 || g.Missing != never || g.Unmeasured != g.Elsewhere {
					t.Errorf("never came %d: %+v, not measured %d", never, g.Account, g.Unmeasured)
				}
				if !whole.says("not received here: they are lost, or somebody has them") {
					t.Errorf("%v", whole.Verdict.Reasons)
				}
				killed.end()
				if err := b.conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// hear receives what comes for some time.
func (s *sibling) hear(c *Consumer, d time.Duration) {
	ctx, stop := context.WithTimeout(s.t.Context(), d)
	defer stop()
	for in := NewBuffer(100); ctx.Err() == nil; {
		n, err := c.Receive(ctx, in)
		if err != nil {
			s.t.Error(err)
		}
		c.HandOver(in, n)
	}
}

// expectedOf is how many messages the only group of a process received of those that another process, or it itself, expected.
func expectedOf(at, other result.Part) (n uint64) {
	for _, from := range []result.Part{at, other} {
		for _, p := range from.Ledger.Topics[0].Producers {
			if s := at.Ledger.Topics[0].Groups[0].Source(p.ID); s != nil {
				received, _ := track.Load(s.Received)
				n += received.Within([]track.Bounds{{Until: p.Next}}).Len()
			}
		}
	}
	return n
}

// What the broker confirmed to a process before it was killed is expected of it like anybody else's.
func TestWhatAKilledProcessSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		killed, alive := b.sibling("killed"), b.sibling("alive")
		sender := killed.sender(100)
		killed.send(sender, 300, time.Second)
		left := killed.part("killed", killed.collector)
		left.Ledger.Unfinished = true
		killed.send(sender, 50, time.Second) // in its last second, which it could tell nobody of
		b.steal(10)                          // the first of all
		alive.work(alive.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest}), 340)
		whole := together(t, result.Siblings{Processes: 2}, left, alive.end())
		if a := whole.Topics[0].Groups[0].Account; a.Expected != 300 || a.Received != 340 || a.Unexpected != 50 || a.Lost != 10 {
			t.Errorf("%+v", a)
		}
		killed.end()
		if err := b.conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// stall is a broker that answers nothing from an instant of the test on, for so long.
func stall(from, long time.Duration) memory.Config {
	start := driver.Now()
	return memory.Config{Service: func(int64) time.Duration {
		if at := time.Duration(driver.Now() - start); at > from && at < from+long {
			return from + long - at
		}
		return time.Millisecond
	}}
}

// A broker stands still from second 2 on, and a process that sends 100 a second by a schedule is killed at second 5, be its messages all handed over or waiting for
// room: 300 that were due have come to no end, and are the slowest of the process, of its phase and of the whole. One that went on to its end has none.
func TestWhatWasUnderWayWhenAProcessWasKilled(t *testing.T) {
	for name, window := range map[string]int{"handed over": 1000, "waiting for room": 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, stall(2*time.Second, 10*time.Second))
				killed, alive := b.sibling("killed"), b.sibling("alive")
				consumer := alive.consumer(driver.ConsumerConfig{Group: "workers"})
				if _, err := killed.collector.Begin(result.Measure); err != nil {
					t.Fatal(err)
				}
				var sending sync.WaitGroup
				sending.Go(func() { killed.send(killed.sender(window), 100, 8*time.Second) })
				time.Sleep(5*time.Second + time.Millisecond)
				left := killed.part("killed", killed.collector)
				left.Ledger.Unfinished = true
				one := left.Result.Topics[0]
				u := one.Underway
				if u == nil || u.Sends < 299 || u.Sends > 302 || (u.Arrivals > 290) != (window == 5) || one.Counts["due"] < 500 || one.Counts["due"] > 502 {
					t.Fatalf("%+v of %v", u, one.Counts)
				}
				if w := one.Phases[result.Measure]; w.Underway != *u || w.Counts["due"] != one.Counts["due"] {
					t.Errorf("of the phase %+v, of %v", w.Underway, w.Counts)
				}
				for _, p := range one.History {
					if want := max(0, 100*(p.At-2)); p.Seconds > 0.5 && math.Abs(float64(p.Underway.Sends)-want) > 3 {
						t.Errorf("after %v s: %+v, and it should be %v", p.At, p.Underway, want)
					}
				}
				sending.Wait()
				alive.work(consumer, 800)
				end := alive.end()
				if u := end.Result.Topics[0].Underway; u != nil {
					t.Errorf("of a process that went on to its end: %+v", u)
				}
				for _, meant := range []bool{false, true} {
					whole := together(t, result.Siblings{Processes: 2, Killed: meant}, left, end)
					if *whole.Topics[0].Underway != *u {
						t.Errorf("the whole: %+v", whole.Topics[0].Underway)
					}
					if p := whole.Topics[0].Percentiles["publish_latency"][0]; !p.Supported || p.Believed {
						t.Errorf("of %d due 300 have no latency, and the median of the others is believed", one.Counts["due"])
					}
					v := whole.Verdict
					if reasons := strings.Join(v.Reasons, "\n"); v.Valid || strings.Contains(reasons, "the test ended before its time") == meant || v.Account != meant {
						t.Errorf("meant: %v: %+v", meant, v)
					}
					if notes := strings.Join(v.Notes, "\n"); !strings.Contains(notes, "5s after its start") {
						t.Errorf("notes:\n%s", notes)
					}
				}
				killed.end()
				if err := b.conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Requests that had no reply when their process was killed are under way.
func TestRequestsOfAKilledProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, memory.Config{Features: memory.Log()}, "")
		c := o.run.NewCollector()
		defer c.Close()
		o.consumer(driver.ConsumerConfig{})
		s := o.sender(100)
		var asking sync.WaitGroup
		for range 7 {
			asking.Go(func() {
				if _, err := s.Request(t.Context(), 5*time.Second, driver.Message{Body: []byte("?")}, Timing{Due: driver.Now()}, o.replies); err == nil {
					t.Error("somebody answered")
				}
			})
		}
		time.Sleep(time.Second)
		if u := c.Result().Topics[0].Underway; u == nil || u.Requests != 7 {
			t.Errorf("%+v", u)
		}
		asking.Wait()
		if u := c.Result().Topics[0].Underway; u != nil {
			t.Errorf("when all were given up: %+v", u)
		}
		o.close()
	})
}

// A ledger that is younger than the result beside it has received what no distribution has: that is missing, be the process killed or not.
func TestALedgerThatKnowsMoreThanTheDistributions(t *testing.T) {
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			one, two := b.sibling("one"), b.sibling("two")
			consumer := two.consumer(driver.ConsumerConfig{Group: "workers"})
			one.send(one.sender(100), 300, time.Second)
			two.work(consumer, 200)
			before := two.part("two", two.collector).Result
			two.work(consumer, 100)
			end := two.end()
			end.Ledger.Unfinished = killed
			first := one.end()
			for name, c := range map[string]struct {
				part result.Part
				want uint64
			}{"of one instant": {end, 0}, "mixed": {result.Part{Result: before, Ledger: end.Ledger}, 100}} {
				whole := together(t, result.Siblings{Processes: 2, Killed: killed}, first, c.part)
				g := whole.Topics[0].Groups[0]
				if g.Received != 300 || g.Lost != 0 || g.Unmeasured != c.want {
					t.Errorf("%s: %+v, not measured %d", name, g.Account, g.Unmeasured)
				}
				believed := whole.Topics[0].Percentiles["e2e_time"][1].Believed // p90
				if said := strings.Contains(strings.Join(whole.Verdict.Reasons, "\n"), "100 messages (33 %) were received, or may have been, by a process"); believed != (c.want == 0) || said != (c.want > 0) {
					t.Errorf("%s: believed %v, and %+v", name, believed, whole.Verdict)
				}
			}
			if err := b.conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
