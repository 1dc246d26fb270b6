package drivertest

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var measure = []test{
	{"done never before the broker has it", confirmFrozen},
	{"publish does not linger", publishLinger},
	{"receive does not linger", receiveLinger},
	{"an idle consumer rests", idle},
	{"memory per message", memory},
}

func confirmFrozen(t *testing.T, k *kit) {
	claimed(t, k.confirmed(), "confirmation")
	url, freeze := k.freezer(t)
	c := k.openAt(t, url)
	topic := k.topic(t, k.open(t))
	p := k.producer(t, c, topic)
	p.send(t, messages("before", 10))
	thaw := freeze()
	sent, back := p.handing(context.Background(), messages("frozen", 10))
	select {
	case <-sent.all:
	case <-time.After(k.Quiet):
	}
	n := sent.confirmed()
	thaw()
	if n > 0 {
		t.Errorf("%d of 10 messages were confirmed while the server was frozen", n)
	}
	k.within(t, "Send", func() { <-back })
	p.wait(t, sent)
}

// alone sends n messages, each a while after the one before has been received, and gives the times from Send to Done and
// from there to the return of Receive. The while differs, so that no client that polls is met at the right moment each time.
func alone(t *testing.T, k *kit, n int) (published, delivered []time.Duration) {
	t.Helper()
	_, _, p, r := k.flow(t)
	ctx := k.context(t)
	returned := make(chan time.Time)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(returned)
		for b := make(driver.Batch, 10); ; {
			got, err := r.Receive(ctx, b)
			now := time.Now()
			if err != nil {
				return
			}
			if k.f.Settle.Has(driver.Ack) {
				_ = r.Settle(ctx, b[:got], driver.Ack)
			}
			select {
			case returned <- now:
			case <-stop:
				return
			}
		}
	}()
	for i := range n {
		b := messages("alone", 1)
		time.Sleep(time.Duration(i*7%20) * time.Millisecond)
		begin := time.Now()
		p.send(t, b)
		confirmed := time.Now()
		published = append(published, confirmed.Sub(begin))
		select {
		case at, ok := <-returned:
			if !ok {
				t.Fatalf("Receive failed after %d messages", i)
			}
			delivered = append(delivered, at.Sub(confirmed))
		case <-ctx.Done():
			t.Fatalf("message %d was not received", i)
		}
	}
	slices.Sort(published)
	slices.Sort(delivered)
	return published, delivered
}

// What waits does so each time; a busy machine has moments in which it does not.
const rounds = 5

func publishLinger(t *testing.T, k *kit) {
	timed(t)
	for round := 1; ; round++ {
		published, _ := alone(t, k, 50)
		t.Logf("from Send to done: best %v, median %v", published[0], published[len(published)/2])
		if published[0] <= k.Prompt {
			return
		}
		if round == rounds {
			t.Fatalf("from Send to done the best of %d messages took %v: something waits for more of them", len(published), published[0])
		}
	}
}

// receiveLinger takes the lower quartile, not the best: a consumer that polls is sometimes lucky.
func receiveLinger(t *testing.T, k *kit) {
	k.consumes(t)
	timed(t)
	for round := 1; ; round++ {
		_, delivered := alone(t, k, 50)
		quartile := delivered[len(delivered)/4]
		t.Logf("from done to received: best %v, lower quartile %v, median %v", delivered[0], quartile, delivered[len(delivered)/2])
		if quartile <= k.Prompt {
			return
		}
		if round == rounds {
			t.Fatalf("from done to received three quarters of %d messages took %v or more: something waits or polls", len(delivered), quartile)
		}
	}
}

// idle counts the processor time of the whole process while all that happens is a Receive that waits: a client that spins
// takes it from the load generator beside it. What a loop that does spin gets in the same time is the yardstick, as on a
// busy machine that is little.
func idle(t *testing.T, k *kit) {
	k.consumes(t)
	timed(t)
	_, _, p, r := k.flow(t)
	p.send(t, messages("idle", 1))
	r.finish(t, 1)
	runtime.GC() // what earlier tests left is not this one's
	before, ok := processorTime()
	if !ok {
		notProven(t, "this platform does not tell the processor time")
	}
	r.nothing(t, "nothing was sent")
	between, _ := processorTime()
	for begin := time.Now(); time.Since(begin) < k.Quiet; {
		continue
	}
	after, _ := processorTime()
	used, spinning := between-before, after-between
	t.Logf("%v of processor time in %v of waiting, %v in as much of spinning", used, k.Quiet, spinning)
	if used > spinning/4 {
		t.Errorf("a Receive that only waits used %v of processor time in %v", used, k.Quiet)
	}
}

// memory counts what the whole process allocates, an embedded server included. The bound is far above what any client
// needs for a small message, and below a buffer made for each.
func memory(t *testing.T, k *kit) {
	_, _, p, r := k.flow(t)
	const rounds, each = 10, 200
	round := func() {
		p.send(t, messages("memory", each))
		if !k.onlySends() {
			r.finish(t, each)
		}
	}
	round()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		round()
	}
	runtime.ReadMemStats(&after)
	bytes := (after.TotalAlloc - before.TotalAlloc) / (rounds * each)
	t.Logf("%d bytes allocated per message of 11 bytes", bytes)
	if bytes > 32<<10 {
		t.Errorf("%d bytes are allocated per message of 11 bytes", bytes)
	}
}
