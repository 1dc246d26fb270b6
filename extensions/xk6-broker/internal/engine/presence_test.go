package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// lossy is a consumer that some messages never come to.
type lossy struct {
	driver.Consumer

	drops func(driver.Message) bool
}

func (c lossy) Receive(ctx context.Context, into driver.Batch) (int, error) {
	for {
		n, err := c.Consumer.Receive(ctx, into)
		kept := 0
		for i := range n {
			if !c.drops(into[i]) {
				into[kept] = into[i]
				kept++
			}
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}

// Consumers leave when another process has yet to send: a note counts what it sends then, which nobody expects. Where one of them is there still, of a group,
// there is none.
func TestWhatIsSentWhenAllConsumersHaveLeftIsNamed(t *testing.T) {
	groups := memory.Subject()
	groups.Groups = true
	for _, c := range []struct {
		told, stays bool
		note        string
	}{
		{told: true, note: "why=away topic=orders group=workers count=30"},
		{note: "why=away topic=orders group=workers count=30"},
		{told: true, stays: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Features: groups})
			one, two := b.sibling("one"), b.sibling("two")
			consumer := one.consumer(driver.ConsumerConfig{Group: "workers"})
			var other *Consumer
			if c.stays {
				other = two.consumer(driver.ConsumerConfig{Group: "workers"})
			}
			sender := two.sender(100)
			two.send(sender, 100, time.Second)
			if c.stays {
				two.receive(other, 50)
				one.receive(consumer, 50)
			} else {
				one.receive(consumer, 100)
			}
			if c.told {
				one.arrived(time.Second, Consume{})
			}
			if err := consumer.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			two.send(sender, 10, 3*time.Second)
			if c.stays {
				two.receive(other, 30)
				two.arrived(time.Second, Consume{})
			}
			r := together(t, verdict.Siblings{Processes: 2}, one.end(), two.end())
			a := r.Topics[0].Groups[0].Account
			want := fates{expected: 100, received: 100}
			if c.stays {
				want = fates{expected: 130, received: 130}
			}
			if got := r.fates(t); got != want {
				t.Errorf("%+v: %+v, want %+v", c, a, want)
			}
			if noted := r.notes("no-consumer"); noted != (c.note != "") || c.note != "" && !r.notes("no-consumer "+c.note) || !r.Verdict.Valid {
				t.Errorf("%+v: %q", c, reasontest.Codes(r.Verdict.Reasons))
			}
		})
	}
}
