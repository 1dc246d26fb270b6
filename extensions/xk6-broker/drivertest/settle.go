package drivertest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var settle = []test{
	{"refused outcomes", outcomesRefused},
	{"ack ends the delivery", func(k *kit) { k.ends(driver.Ack) }},
	{"requeue delivers again", requeueAgain},
	{"reject ends the delivery", func(k *kit) { k.ends(driver.Reject) }},
	{"a part and out of order", settlePart},
	{"twice", settleTwice},
	{"beside receive", settleBeside},
	{"after close", settleAfterClose},
	{"unsettled goes to another at close", unsettled},
	{"backlog", backlog},
	{"confirmed where asked for", settleConfirmed},
	{"not waited for where not asked for", settleUnconfirmed},
}

func outcomesRefused(k *kit) {
	f := k.flow()
	f.send("refused", 3)
	b := f.r.take(3)
	for i, o := range []driver.Outcome{driver.Ack, driver.Requeue, driver.Reject} {
		if !k.f.Settle.Has(o) {
			k.unsupported("the outcome "+o.String(), f.r.Settle(k.Context(), b[i:i+1], o))
		}
	}
}

func (k *kit) ends(o driver.Outcome) {
	f := k.settling(o)
	b := f.send("ended", 50)
	got := f.r.take(50)
	k.same(got, b)
	f.r.settle(got, o)
	f.gone()
}

func requeueAgain(k *kit) {
	f := k.settling(driver.Requeue)
	b := f.send("requeued", 10)
	f.r.settle(f.r.take(10), driver.Requeue)
	f.redelivered(b)
}

// redelivered receives messages for the second time and settles them.
func (f *flow) redelivered(b driver.Batch) {
	f.kit.Helper()
	got := f.r.finish(len(b))
	f.kit.same(got, b)
	for _, m := range got {
		if f.kit.f.Attempts != (m.Attempt >= 2) {
			f.kit.Errorf("attempt %d on the second delivery, and Attempts is claimed: %t", m.Attempt, f.kit.f.Attempts)
		}
	}
	f.gone()
}

// settlePart settles every other message, from the last to the first. The others must come again.
// A settled message may come again only if the broker keeps one position per partition.
func settlePart(k *kit) {
	k.claims(k.kept() && k.shared(), "redelivery")
	f := k.settling(driver.Ack)
	f.send("part", 20)
	var settled, open driver.Batch
	for i, m := range f.r.take(20) {
		if i%2 == 0 {
			settled = append(settled, m)
		} else {
			open = append(open, m)
		}
	}
	slices.Reverse(settled)
	f.r.settle(settled[:5], driver.Ack)
	for i := range settled[5:] {
		f.r.settle(settled[5+i:][:1], driver.Ack)
	}
	other := f.reopen()
	if k.f.Order != driver.PerPartition {
		other.finishes(open)
		other.nothing(quiet())
		return
	}
	for _, m := range open {
		for !other.seen[string(m.Body)] {
			other.finish(1)
		}
	}
}

// settleTwice accepts any result of the second settlement. It must harm nothing.
func settleTwice(k *kit) {
	f := k.settling(driver.Ack)
	f.send("twice", 3)
	b := f.r.take(3)
	f.r.settle(b, driver.Ack)
	if err := f.r.Settle(k.Context(), b, driver.Ack); err != nil {
		k.Logf("acknowledged a second time: %v", err)
	}
	f.r.finishes(f.send("after", 3))
	f.gone()
}

func settleBeside(k *kit) {
	f := k.settling(driver.Ack)
	b := f.send("beside", 300)
	received := make(chan driver.Batch, len(b))
	var settlers sync.WaitGroup
	for range 4 {
		settlers.Go(func() {
			for some := range received {
				f.r.settle(some, driver.Ack)
			}
		})
	}
	var got driver.Batch
	for len(got) < len(b) {
		some := f.r.next(7)
		got = append(got, some...)
		received <- some
	}
	close(received)
	settlers.Wait()
	k.same(got, b)
	f.gone()
}

func settleAfterClose(k *kit) {
	f := k.settling(driver.Ack)
	f.send("late", 1)
	b := f.r.take(1)
	k.close(f.r)
	if err := f.r.Settle(k.Context(), b, driver.Ack); !errors.Is(err, driver.ErrClosed) {
		k.Errorf("Settle after Close: %v, want ErrClosed", err)
	}
}

func unsettled(k *kit) {
	k.claims(k.kept() && k.shared(), "redelivery")
	f := k.settling(driver.Ack)
	b := f.send("unsettled", 10)
	k.same(f.r.take(10), b)
	k.close(f.r)
	f.r = k.consumer(k.open(), f.topic)
	f.redelivered(b)
}

// backlog acknowledges from the first message on, so that a broker with one position per partition
// can follow. Another connection must report the same. If the backlog is an estimate, it does not
// include the messages at a consumer, and no consumer is there when they are sent.
func backlog(k *kit) {
	k.claims(k.shared(), "a backlog that stays")
	k.single()
	f := k.settling(driver.Ack)
	backlogger, ok := f.conn.(driver.Backlogger)
	k.claims(ok, "backlog")
	f.backlog(f.conn, 0)
	first, err := backlogger.Backlog(k.Context(), f.topic, k.usual(f.topic).Group)
	if err != nil {
		k.Fatal(err)
	}
	if first.Estimate {
		k.close(f.r)
	}
	b := f.send("backlog", 10)
	f.backlog(f.conn, 10)
	if first.Estimate {
		k.consumer(f.conn, f.topic).finishes(b)
		f.backlog(f.conn, 0)
		return
	}
	held, other := f.r.take(10), k.open()
	both := func(n int64) {
		f.backlog(f.conn, n)
		f.backlog(other, n)
	}
	both(10)
	f.r.settle(held[:4], driver.Ack)
	both(6)
	f.r.settle(held[4:], driver.Ack)
	both(0)
}

// settleFrozen settles at a frozen server. It returns the error of Settle and whether Settle
// returned before the server thawed.
func (k *kit) settleFrozen(confirm bool, wait time.Duration) (early bool, err error) {
	url, freeze := k.freezer()
	c := k.open()
	config := k.usual(k.topic(c, 1))
	config.ConfirmSettle = confirm
	r := k.consumerWith(k.openAt(url), config)
	k.producer(c, config.Topic).send(k.messages("frozen", 1))
	b := r.take(1)
	thaw := freeze()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		err = r.Settle(k.Context(), b, driver.Ack)
	}()
	select {
	case <-returned:
		early = true
	case <-time.After(wait):
	}
	thaw()
	<-returned
	return early, err
}

func settleConfirmed(k *kit) {
	k.claims(k.acks() && k.f.SettleConfirmed != driver.Never, "settlements that are confirmed")
	if k.SettleUnconfirmed {
		c := k.open()
		config := k.usual(k.topic(c, 1))
		config.ConfirmSettle = true
		k.refused("a settlement that is confirmed", c, config)
		return
	}
	early, err := k.settleFrozen(true, quiet())
	if err != nil || early {
		k.Errorf("Settle returned before the frozen server thawed: %t, want false; error: %v", early, err)
	}
}

func settleUnconfirmed(k *kit) {
	k.claims(k.acks() && k.f.SettleConfirmed != driver.Always, "settlements that are not confirmed")
	early, err := k.settleFrozen(false, k.Timeout)
	if err != nil || !early {
		k.Errorf("Settle returned before the frozen server thawed: %t, want true; error: %v", early, err)
	}
}
