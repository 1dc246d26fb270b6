package load

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// What a process had received and not acknowledged when it was killed is accounted for by what became of it: it came again, the broker has it, or it is
// lost. Where it acknowledged, nobody knows how far it got.
func TestWhatAKilledProcessHad(t *testing.T) {
	for name, c := range map[string]struct {
		settled     int  // by it, of the 300 that it received
		forgotten   bool // by the broker, all others
		again       int  // received by another process
		redelivered uint64
		want        result.Account
	}{
		"comes again":                         {again: 300, redelivered: 300},
		"half of it comes again":              {again: 150, redelivered: 150, want: result.Account{Undelivered: 150}},
		"is at the broker":                    {want: result.Account{Undelivered: 300}},
		"is lost":                             {forgotten: true, want: result.Account{Lost: 300}},
		"is elsewhere":                        {settled: 10, forgotten: true, want: result.Account{Elsewhere: 290}},
		"comes, but for what it acknowledged": {settled: 10, again: 290, redelivered: 290},
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
