package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// A killed process received and settled messages after it wrote its ledger. They are uncertain, because nothing else tells them from lost ones.
func TestAccount_KilledAfterItsLedger_MissingUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		killed, alive := b.sibling("killed"), b.sibling("alive")
		reading := killed.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 100})
		time.Sleep(2 * time.Second)
		alive.send(alive.sender(100), 300, time.Second)
		killed.work(reading, 100)
		left := killed.part("killed", killed.collector)
		left.Ledger.Unfinished = true
		killed.work(reading, 100)
		killed.close(reading) // the broker sees that it is gone
		whole := together(t, verdict.Siblings{Processes: 2}, left, alive.end())
		want := fates{expected: 300, received: 100, uncertain: 200, why: string(account.NoBacklog)}
		if got := whole.fates(t); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if !reasontest.Has(whole.Verdict.Invalid(), "process-missing why=killed name=process_1_(killed)") {
			t.Errorf("%q", reasontest.Codes(whole.Verdict.Reasons))
		}
		killed.end()
		if err := b.conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
