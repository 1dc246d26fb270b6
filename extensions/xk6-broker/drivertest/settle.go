package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var settle = []test{
	{"refused outcomes", func(k *kit) {
		f := k.flow()
		f.send("refused", 3)
		b := f.r.take(3)
		for i, o := range []driver.Outcome{driver.Ack, driver.Requeue, driver.Reject} {
			if !k.f.Settle.Has(o) {
				k.is(f.r.Settle(k.Context(), b[i:i+1], o), errors.ErrUnsupported)
			}
		}
	}},
	{"ack ends the delivery", func(k *kit) { k.ends(driver.Ack) }},
	{"requeue delivers again", func(k *kit) {
		f := k.settling(driver.Requeue)
		b := f.send("requeued", 10)
		f.r.settle(f.r.take(10), driver.Requeue)
		f.redelivered(b)
	}},
	{"reject ends the delivery", func(k *kit) { k.ends(driver.Reject) }},
	// Settles every other message, from the last to the first. The others must come again.
	// A settled message may come again only if the broker keeps one position per partition.
	{"a part and out of order", func(k *kit) {
		k.claims(k.kept() && k.shared(), "redelivery")
		f := k.settling(driver.Ack)
		f.send("part", 20)
		var settled, open driver.Batch
		for pair := range slices.Chunk(f.r.take(20), 2) {
			settled = append(settled, pair[0])
			open = append(open, pair[1])
		}
		slices.Reverse(settled)
		f.r.settle(settled[:5], driver.Ack)
		for one := range slices.Chunk(settled[5:], 1) {
			f.r.settle(one, driver.Ack)
		}
		k.close(f.r)
		other := k.consumer(f.conn, f.topic)
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
	}},
	// Any result of the second settlement is valid. It must harm nothing.
	{"twice", func(k *kit) {
		f := k.settling(driver.Ack)
		f.send("twice", 3)
		b := f.r.take(3)
		f.r.settle(b, driver.Ack)
		_ = f.r.Settle(k.Context(), b, driver.Ack)
		f.r.finishes(f.send("after", 3))
		f.gone()
	}},
	{"beside receive", func(k *kit) {
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
	}},
	{"after close", func(k *kit) {
		f := k.settling(driver.Ack)
		f.send("late", 1)
		b := f.r.take(1)
		k.close(f.r)
		k.is(f.r.Settle(k.Context(), b, driver.Ack), driver.ErrClosed)
	}},
	{"unsettled goes to another at close", func(k *kit) {
		k.claims(k.kept() && k.shared(), "redelivery")
		f := k.settling(driver.Ack)
		b := f.send("unsettled", 10)
		k.same(f.r.take(10), b)
		k.close(f.r)
		f.r = k.consumer(k.open(), f.topic)
		f.redelivered(b)
	}},
	// Acknowledges from the first message on, so that a broker with one position per partition
	// can follow. Another connection must report the same. If the backlog is an estimate, it does not
	// include the messages at a consumer, and no consumer is there when they are sent.
	{"backlog", func(k *kit) {
		k.claims(k.shared(), "a backlog that stays")
		k.needs(k.single(), "a broker that delivers and counts single messages")
		f := k.settling(driver.Ack)
		backlogger, ok := f.conn.(driver.Backlogger)
		k.claims(ok, "backlog")
		f.backlog(f.conn, 0)
		first, err := backlogger.Backlog(k.Context(), f.topic, k.usual(f.topic).Group)
		k.noError("Backlog", err)
		if first.Estimate {
			k.close(f.r)
			b := f.send("backlog", 10)
			f.backlog(f.conn, 10)
			k.consumer(f.conn, f.topic).finishes(b)
			f.backlog(f.conn, 0)
			return
		}
		f.send("backlog", 10)
		f.backlog(f.conn, 10)
		b, other := f.r.take(10), k.open()
		for _, n := range []int{0, 4, 6} {
			f.r.settle(b[:n], driver.Ack)
			b = b[n:]
			f.backlog(f.conn, int64(len(b)))
			f.backlog(other, int64(len(b)))
		}
	}},
	{"confirmed where asked for", func(k *kit) {
		k.claims(k.acks() && k.f.SettleConfirmed != driver.Never, "settlements that are confirmed")
		if k.SettleUnconfirmed {
			c := k.open()
			config := k.usual(k.topic(c, 1))
			config.ConfirmSettle = true
			k.refused(c, config)
			return
		}
		k.settleFrozen(true, quiet())
	}},
	{"not waited for where not asked for", func(k *kit) {
		k.claims(k.acks() && k.f.SettleConfirmed != driver.Always, "settlements that are not confirmed")
		k.settleFrozen(false, k.Timeout)
	}},
}

// ends proves that a settled message does not come again.
func (k *kit) ends(o driver.Outcome) {
	f := k.settling(o)
	b := f.send("ended", 50)
	got := f.r.take(50)
	k.same(got, b)
	f.r.settle(got, o)
	f.gone()
}

// redelivered receives messages for the second time and settles them.
func (f *flow) redelivered(b driver.Batch) {
	got := f.r.finish(len(b))
	f.kit.same(got, b)
	for _, m := range got {
		f.kit.check(f.kit.f.Attempts == (m.Attempt >= 2),
			"attempt %d on the second delivery, and Attempts is claimed: %t", m.Attempt, f.kit.f.Attempts)
	}
	f.gone()
}

// settleFrozen settles at a frozen server. Settle must return before the server thaws, within a
// time, unless the settlement is to be confirmed.
func (k *kit) settleFrozen(confirm bool, wait time.Duration) {
	url, freeze := k.freezer()
	c := k.open()
	config := k.usual(k.topic(c, 1))
	config.ConfirmSettle = confirm
	r := k.consumerWith(k.openAt(url), config)
	k.producer(c, config.Topic).send(k.messages("frozen", 1))
	b := r.take(1)
	thaw := freeze()
	result := make(chan error)
	go func() { result <- r.Settle(k.Context(), b, driver.Ack) }()
	var err error
	early := false
	select {
	case err = <-result:
		early = true
	case <-time.After(wait):
	}
	thaw()
	if !early {
		err = <-result
	}
	k.check(err == nil && early != confirm,
		"Settle returned before the frozen server thawed: %t, want %t; error: %v", early, !confirm, err)
}

var request = []test{
	{"the verbs are there as claimed", func(k *kit) {
		requester, replier := k.flow().verbs()
		k.check((requester != nil) == k.f.Requests && (replier != nil) == k.f.Requests,
			"Requests is claimed: %t; the producer can request: %t; the consumer can reply: %t",
			k.f.Requests, requester != nil, replier != nil)
	}},
	{"each request gets its reply", func(k *kit) {
		f := k.flow()
		requester, replier := f.verbs()
		k.claims(k.f.Requests && requester != nil && replier != nil, "request and reply")
		const n = 50
		ctx := k.limit(k.Timeout)
		var requests sync.WaitGroup
		for i := range n {
			requests.Go(func() {
				body := fmt.Sprint("request ", i)
				reply, err := requester.Request(ctx, driver.Message{Body: []byte(body)})
				want := "reply to " + body
				k.check(err == nil && string(reply.Body) == want, "Request: %q, %v; want %q", reply.Body, err, want)
			})
		}
		for got := 0; got < n; {
			b := f.r.next(10)
			got += len(b)
			for _, m := range b {
				reply := driver.Message{Body: append([]byte("reply to "), m.Body...)}
				k.noError("Reply", replier.Reply(ctx, m, reply))
			}
			f.r.acknowledge(b)
		}
		requests.Wait()
	}},
	{"a request ends with its context", func(k *kit) {
		requester, _ := k.flow().verbs()
		k.claims(k.f.Requests && requester != nil, "request and reply")
		ctx := k.limit(quiet())
		_, _ = requester.Request(ctx, driver.Message{Body: []byte("without a reply")})
		k.check(ctx.Err() != nil, "Request returned without a reply and before its context ended")
	}},
}

// verbs returns the two ends of a conversation, nil if the driver does not have them.
func (f *flow) verbs() (driver.Requester, driver.Replier) {
	requester, _ := f.p.Producer.(driver.Requester)
	replier, _ := f.r.Consumer.(driver.Replier)
	return requester, replier
}
