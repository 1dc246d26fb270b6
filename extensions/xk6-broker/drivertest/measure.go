package drivertest

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

var measure = []test{
	{"done never before the broker has it", func(k *kit) {
		k.claims(k.confirmed(), "confirmation")
		url, freeze := k.freezer()
		p := k.lone(url)
		p.send(k.messages("before", 10))
		thaw := freeze()
		sent := p.start(context.Background(), k.messages("frozen", 10))
		select {
		case <-sent.all:
		case <-time.After(quiet()):
		}
		p.unconfirmed(sent)
		thaw()
		sent.wait()
	}},
	{"publish does not linger", func(k *kit) {
		k.prompt("from Send to Done, the best of 50", func() time.Duration {
			published, _ := alone(k)
			return published[0]
		})
	}},
	// The lower quartile counts, because a consumer that polls is sometimes lucky.
	{"receive does not linger", func(k *kit) {
		k.claims(!k.onlySends(), "consumers")
		k.prompt("from Done to Receive, the lower quartile of 50", func() time.Duration {
			_, delivered := alone(k)
			return delivered[len(delivered)/4]
		})
	}},
	// Measures the CPU time of the process while a Receive waits. It compares with a loop that
	// spins as long, because a spinning client takes that time from the load generator.
	{"an idle consumer rests", func(k *kit) {
		f := k.consuming()
		k.needs(!testing.Short(), "an idle machine, as make test-full has")
		f.r.finishes(f.send("idle", 1))
		runtime.GC() // of earlier tests
		before := machine.CPU()
		f.r.nothing(quiet())
		waiting := machine.CPU() - before
		for begin := time.Now(); time.Since(begin) < quiet(); {
			continue
		}
		spinning := machine.CPU() - before - waiting
		k.Logf("in %v: %v of CPU time waiting, %v spinning", quiet(), waiting, spinning)
		k.check(waiting <= spinning/4, "a Receive that only waits used %v of CPU time in %v", waiting, quiet())
	}},
	// Counts all that the process allocates, with an embedded server. The bound is far above
	// the need of a small message and below a buffer for each message.
	{"memory per message", func(k *kit) {
		f := k.flow()
		const rounds, each = 10, 200
		round := func() {
			f.send("memory", each)
			if !k.onlySends() {
				f.r.finish(each)
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
		k.Logf("%d bytes allocated per message of 11 bytes", bytes)
		k.check(bytes <= 32<<10, "%d bytes are allocated per message of 11 bytes", bytes)
	}},
}

// alone sends single messages to a Receive that waits. It returns the sorted times from Send to
// Done and from Done to the return of Receive. The pauses before the messages differ, so that no
// client that polls is met at the right moment each time.
func alone(k *kit) (published, delivered []time.Duration) {
	f := k.flow()
	for i := range 50 {
		var begin, confirmed time.Time
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			time.Sleep(time.Duration(i*7%20) * time.Millisecond)
			begin = time.Now()
			f.send("alone", 1)
			confirmed = time.Now()
		}()
		b := f.r.next(10)
		received := time.Now()
		<-sent
		f.r.acknowledge(b)
		published = append(published, confirmed.Sub(begin))
		delivered = append(delivered, received.Sub(confirmed))
	}
	slices.Sort(published)
	slices.Sort(delivered)
	return published, delivered
}

// prompt measures up to five times until a time is prompt. A client that waits does so each time.
// A busy machine does not.
func (k *kit) prompt(name string, measure func() time.Duration) {
	k.Helper()
	k.needs(!testing.Short(), "an idle machine, as make test-full has")
	for range 5 {
		best := measure()
		k.Logf("%s: %v", name, best)
		if best <= k.Prompt {
			return
		}
	}
	k.check(false, "%s takes more than %v: the client waits for more messages, or polls", name, k.Prompt)
}
