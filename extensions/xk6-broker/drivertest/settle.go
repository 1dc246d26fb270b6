package drivertest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var settle = []test{
	{"refused outcomes", outcomesRefused},
	{"ack ends the delivery", ackEnds},
	{"requeue delivers again", requeueAgain},
	{"reject ends the delivery", rejectEnds},
	{"a part and out of order", settlePart},
	{"twice", settleTwice},
	{"beside receive", settleBeside},
	{"after close", settleAfterClose},
	{"unsettled goes to another at close", unsettled},
	{"backlog", backlog},
	{"confirmed where asked for", settleConfirmed},
	{"not waited for where not asked for", settleUnconfirmed},
}

func (k *kit) can(t *testing.T, o driver.Outcome) {
	t.Helper()
	claimed(t, k.f.Settle.Has(o), o.String())
}

// flow is one topic with its one producer and consumer.
func (k *kit) flow(t *testing.T) (c driver.Conn, topic string, p *sender, r *receiver) {
	t.Helper()
	c = k.open(t)
	topic = k.topic(t, c)
	return c, topic, k.producer(t, c, topic), k.consumer(t, c, topic)
}

func outcomesRefused(t *testing.T, k *kit) {
	_, _, p, r := k.flow(t)
	p.send(t, messages("refused", 3))
	b := r.take(t, 3)
	for i, o := range []driver.Outcome{driver.Ack, driver.Requeue, driver.Reject} {
		if !k.f.Settle.Has(o) {
			unsupported(t, "the outcome "+o.String(), r.trySettle(t, b[i:i+1], o))
		}
	}
}

// gone fails the test where a message of the topic comes to the group once more, now or when its consumer comes back. A broker that confirms no settlement may
// have some on its way within itself, and forget them when the consumer closes: one that was slow until now is given as much time again.
func (k *kit) gone(t *testing.T, c driver.Conn, topic string, r *receiver) {
	t.Helper()
	r.nothingFor(t, max(k.Quiet, min(time.Since(r.opened), k.Patience)), "all has been settled")
	k.settled(t, c, topic, 0)
	k.close(t, "consumer", r)
	if k.shared() {
		k.consumer(t, c, topic).nothing(t, "all had been settled before this consumer came")
	}
}

// settled waits until the group's backlog is n, where the broker can tell.
func (k *kit) settled(t *testing.T, c driver.Conn, topic string, n int64) {
	t.Helper()
	teller, ok := c.(driver.Backlogger)
	if !ok || !k.shared() {
		return
	}
	var last driver.Backlog
	for deadline := time.Now().Add(k.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var err error
		if last, err = teller.Backlog(k.context(t), topic, k.group(topic, "group")); err != nil {
			t.Fatalf("Backlog: %v", err)
		}
		if last.Messages == n {
			return
		}
	}
	t.Errorf("the backlog stays at %d, want %d", last.Messages, n)
}

func ackEnds(t *testing.T, k *kit) {
	k.can(t, driver.Ack)
	c, topic, p, r := k.flow(t)
	b := messages("acked", 50)
	p.send(t, b)
	same(t, "acknowledged", bodies(r.finish(t, len(b))), bodies(b))
	k.gone(t, c, topic, r)
}

func requeueAgain(t *testing.T, k *kit) {
	k.can(t, driver.Requeue)
	c, topic, p, r := k.flow(t)
	b := messages("requeued", 10)
	p.send(t, b)
	r.settle(t, r.take(t, len(b)), driver.Requeue)
	again := r.finish(t, len(b))
	same(t, "requeued", bodies(again), bodies(b))
	for _, m := range again {
		if k.f.Attempts && m.Attempt < 2 {
			t.Errorf("attempt %d on the second delivery", m.Attempt)
		}
		if !k.f.Attempts && m.Attempt != 0 {
			t.Errorf("attempt %d, and Attempts is not claimed", m.Attempt)
		}
	}
	k.gone(t, c, topic, r)
}

func rejectEnds(t *testing.T, k *kit) {
	k.can(t, driver.Reject)
	c, topic, p, r := k.flow(t)
	p.send(t, messages("rejected", 10))
	r.settle(t, r.take(t, 10), driver.Reject)
	k.gone(t, c, topic, r)
}

// settlePart settles every other message, from the last to the first. What was not settled must come again; what was must
// not, except where the position in a partition is all that the broker keeps.
func settlePart(t *testing.T, k *kit) {
	k.can(t, driver.Ack)
	claimed(t, k.kept() && k.shared(), "redelivery")
	c, topic, p, r := k.flow(t)
	p.send(t, messages("part", 20))
	var settled, open driver.Batch
	for i, m := range r.take(t, 20) {
		if i%2 == 0 {
			settled = append(settled, m)
		} else {
			open = append(open, m)
		}
	}
	slices.Reverse(settled)
	r.settle(t, settled[:5], driver.Ack)
	for i := range settled[5:] {
		r.settle(t, settled[5+i:][:1], driver.Ack)
	}
	k.close(t, "consumer", r)
	if k.f.Order != driver.PerPartition {
		other := k.consumer(t, c, topic)
		same(t, "not settled and delivered again", bodies(other.finish(t, len(open))), bodies(open))
		other.nothing(t, "the others had been settled")
		return
	}
	missing := map[string]bool{}
	for _, s := range bodies(open) {
		missing[s] = true
	}
	for other := k.consumer(t, c, topic); len(missing) > 0; {
		delete(missing, string(other.finish(t, 1)[0].Body))
	}
}

// settleTwice does not say what a second settlement gives, only that it harms nothing.
func settleTwice(t *testing.T, k *kit) {
	k.can(t, driver.Ack)
	c, topic, p, r := k.flow(t)
	p.send(t, messages("twice", 3))
	b := r.take(t, 3)
	r.settle(t, b, driver.Ack)
	if err := r.trySettle(t, b, driver.Ack); err != nil {
		t.Logf("acknowledged a second time: %v", err)
	}
	p.send(t, messages("after", 3))
	same(t, "sent after a message was acknowledged twice", bodies(r.finish(t, 3)), bodies(messages("after", 3)))
	k.gone(t, c, topic, r)
}

func settleBeside(t *testing.T, k *kit) {
	k.can(t, driver.Ack)
	c, topic, p, r := k.flow(t)
	b := messages("beside", 300)
	p.send(t, b)
	received := make(chan driver.Batch, len(b))
	errs := make(chan error, len(b))
	var settlers sync.WaitGroup
	ctx := k.context(t)
	for range 4 {
		settlers.Go(func() {
			for some := range received {
				errs <- r.Settle(ctx, some, driver.Ack)
			}
		})
	}
	var got driver.Batch
	for len(got) < len(b) {
		some, err := r.receive(t, ctx, 7)
		if err != nil {
			t.Errorf("Receive, after %d messages: %v", len(got), err)
			break
		}
		got = append(got, some...)
		received <- some
	}
	close(received)
	k.within(t, "Settle", settlers.Wait)
	close(errs)
	for err := range errs {
		if err != nil {
			t.Errorf("Settle: %v", err)
		}
	}
	same(t, "settled by others than received it", bodies(got), bodies(b))
	k.gone(t, c, topic, r)
}

func settleAfterClose(t *testing.T, k *kit) {
	k.can(t, driver.Ack)
	_, _, p, r := k.flow(t)
	p.send(t, messages("late", 1))
	b := r.take(t, 1)
	k.close(t, "consumer", r)
	if err := r.trySettle(t, b, driver.Ack); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Settle after Close: %v, want ErrClosed", err)
	}
}

func unsettled(t *testing.T, k *kit) {
	k.can(t, driver.Ack)
	claimed(t, k.kept() && k.shared(), "redelivery")
	c, topic, p, r := k.flow(t)
	b := messages("unsettled", 10)
	p.send(t, b)
	same(t, "received and not settled", bodies(r.take(t, len(b))), bodies(b))
	k.close(t, "consumer", r)
	again := k.consumer(t, k.open(t), topic)
	got := again.finish(t, len(b))
	same(t, "delivered again", bodies(got), bodies(b))
	for _, m := range got {
		if k.f.Attempts && m.Attempt < 2 {
			t.Errorf("attempt %d on the second delivery", m.Attempt)
		}
	}
	k.gone(t, c, topic, again)
}

// backlog acknowledges from the first on, so that a broker which keeps a position only can follow. Another connection, asked after the consumer's own, says the
// same. Where the broker is done with messages before they are settled, nothing is said of those that are with a consumer, and there is none when they are sent.
func backlog(t *testing.T, k *kit) {
	c, topic, p, r := k.flow(t)
	teller, ok := c.(driver.Backlogger)
	if !ok {
		t.Skip("not claimed: backlog")
	}
	k.can(t, driver.Ack)
	claimed(t, k.shared(), "a backlog that stays")
	k.single(t)
	k.settled(t, c, topic, 0)
	said, err := teller.Backlog(k.context(t), topic, k.group(topic, "group"))
	if err != nil {
		t.Fatal(err)
	}
	holds := !said.Estimate
	if !holds {
		k.close(t, "consumer", r)
	}
	p.send(t, messages("backlog", 10))
	k.settled(t, c, topic, 10)
	if !holds {
		same(t, "sent while nobody was there", bodies(k.consumer(t, c, topic).finish(t, 10)), bodies(messages("backlog", 10)))
		k.settled(t, c, topic, 0)
		return
	}
	b, other := r.take(t, 10), k.open(t)
	k.settled(t, c, topic, 10)
	k.settled(t, other, topic, 10)
	r.settle(t, b[:4], driver.Ack)
	k.settled(t, c, topic, 6)
	k.settled(t, other, topic, 6)
	r.settle(t, b[4:], driver.Ack)
	k.settled(t, c, topic, 0)
	k.settled(t, other, topic, 0)
}
