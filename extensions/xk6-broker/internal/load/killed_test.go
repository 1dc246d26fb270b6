package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason/reasontest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// What a process had received and not acknowledged when it was killed is accounted for by what became of it: it came again, or the broker has it. Else nobody
// knows: it may have acknowledged it after it had told, though it had acknowledged nothing until then.
func TestWhatAKilledProcessHad(t *testing.T) {
	for name, c := range map[string]struct {
		forgotten   bool // by the broker, all others
		again       int  // received by another process
		redelivered uint64
		want        account.Account
	}{
		"comes again":                          {again: 300, redelivered: 300},
		"is at the broker":                     {want: account.Account{Undelivered: 300}},
		"was acknowledged, as nobody can tell": {forgotten: true, want: account.Account{Uncertain: 300}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				killed, alive := b.sibling("killed"), b.sibling("alive")
				reading := killed.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 300, Start: driver.StartEarliest})
				alive.send(alive.sender(100), 300, time.Second)
				in := killed.receive(reading, 300)
				left := killed.part("killed", killed.collector)
				left.Ledger.Unfinished = true
				if c.forgotten {
					killed.settle(reading, in, 0, 300, driver.Ack)
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
				if a.Expected != 300 || a.Lost != c.want.Lost || a.Undelivered != c.want.Undelivered || a.Uncertain != c.want.Uncertain || a.Why[account.Killed] != c.want.Uncertain || a.Redelivered != c.redelivered || a.Duplicated != 0 {
					t.Errorf("%+v", a)
				}
				if !reasontest.Has(whole.Verdict.Invalid(), "process-missing why=killed name=process_1_(killed)") {
					t.Errorf("%q", reasontest.Codes(whole.Verdict.Reasons))
				}
				killed.end()
				if err := b.conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
