package load

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// What crossed each instant is what a list of all messages says, whichever instants are forgotten meanwhile and whenever the topic was first used.
func TestWhatCrossesAnInstant(t *testing.T) {
	type message struct {
		way      way
		due, end int64
	}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		e := newEdges()
		var c *crossings
		var all []message
		var instants, cuts []int64
		at, known := int64(1000), int64(0) // of the instants before its first use a topic knows the last one, and the cuts
		first := at + random.Int64N(3000)
		for at < 20_000 {
			at += 1 + random.Int64N(50)
			switch n := random.IntN(20); {
			case n == 0:
				cut := random.IntN(3) == 0
				e.next(at, cut)
				if instants = append(instants, at); cut {
					cuts = append(cuts, at)
				}
			case n == 1 && len(instants) > 3 && c != nil:
				i := random.IntN(len(instants) - 1)
				c.join(instants[i])
				instants = append(instants[:i], instants[i+1:]...)
			case at > first:
				if c == nil {
					c, known = e.of(topicKey{"broker", "orders"}), e.last.Load()
				}
				m := message{way(random.IntN(numWays)), at - random.Int64N(1+min(at, random.Int64N(5000))), at}
				all = append(all, m)
				c.ended(m.way, m.due, 1)
			}
		}
		crossed := func(at int64) (n [numWays]uint64) {
			for _, m := range all {
				if m.due < at && m.end > at {
					n[m.way]++
				}
			}
			return n
		}
		instants = slices.DeleteFunc(instants, func(at int64) bool { return at < known })
		for i, got := range c.over(instants) {
			if want := underway(crossed(instants[i])); got != want {
				t.Errorf("seed %d: %+v crossed %d, want %+v", seed, got, instants[i], want)
			}
		}
		for _, cut := range cuts {
			if got, want := c.at(cut), underway(crossed(cut)); got != want {
				t.Errorf("seed %d: %+v crossed the cut at %d, want %+v", seed, got, cut, want)
			}
		}
		if n := len(c.spans); n > len(instants)+2 {
			t.Errorf("seed %d: %d spans for %d instants", seed, n, len(instants))
		}
	}
}

// A broker stands still from second 6 to 10 of a schedule of 100 a second, and the measured window ends at second 8: of what was due in it two seconds
// are under way, though with a window of five messages hardly any of them had been sent. The history says so of every second, and shows when they
// were due.
func TestWhatABrokerHoldsUpAtTheEndOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const end = 10*time.Second + 500*time.Microsecond
		start := driver.Now()
		stands := func(now int64) time.Duration {
			if at := time.Duration(now - start); at > 6*time.Second && at < end {
				return end - at
			}
			return time.Millisecond
		}
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return stands(driver.Now()) }})
		consumer := b.consumer(driver.ConsumerConfig{Group: "workers"})
		c := b.run.NewCollector()
		defer c.Close()
		loop, err := Consume{Count: 1200}.Resolve(b.topic.Address.Driver.Features)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := loop.Run(t.Context(), []*Consumer{consumer}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			produce := Produce{Schedule: constant(100, 12*time.Second), Start: start + int64(5*time.Millisecond), Payload: payload.Spec{Size: payload.Fixed(100)}}
			if _, err := produce.Run(t.Context(), []*Sender{b.sender(5)}); err != nil {
				t.Error(err)
			}
		})
		for second := range 13 {
			time.Sleep(time.Duration(start + int64(second)*int64(time.Second) - driver.Now()))
			c.Collect()
			switch second {
			case 2:
				_, err = c.Begin(result.Measure)
			case 8:
				_, err = c.Begin("rest")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		all.Wait()
		b.finish()
		r := c.Result()
		addUp(t, r)
		w := r.Topics[0].Phases[result.Measure]
		if w.Counts["due"] != 600 || w.Underway.Sends < 199 || w.Underway.Sends > 201 || w.Underway.Arrivals < 190 || w.Underway.Deliveries < 199 || w.Underway.Deliveries > 201 {
			t.Errorf("%+v of %d due", w.Underway, w.Counts["due"])
		}
		for i, p := range r.Topics[0].History {
			if second := int(p.At + 0.5); p.Seconds > 0.9 && second <= 12 && p.Counts["due"] != 100 {
				t.Errorf("interval %d, to %v: %d were due", i, p.At, p.Counts["due"])
			}
			if second := p.At; second > 8.9 && second < 9.1 && (p.Underway.Sends < 299 || p.Underway.Sends > 301) {
				t.Errorf("after 9 s: %+v", p.Underway)
			}
		}
		r.Judge(result.Circumstances{})
		for _, belief := range r.Verdict.Beliefs {
			if belief.UpTo > 0.5 {
				t.Errorf("a third of the messages of the window is not in it, and %s", belief)
			}
		}
	})
}

// What was due before the first phase began, as the iteration that began it was, and was sent in it, is that phase's: there is no other before it.
func TestWhatWasDueBeforeTheFirstPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.run.NewCollector()
		defer c.Close()
		start := driver.Now()
		time.Sleep(25 * time.Millisecond)
		if _, err := c.Begin("a"); err != nil {
			t.Fatal(err)
		}
		produce := Produce{Schedule: constant(100, time.Second), Start: start, Payload: payload.Spec{Size: payload.Fixed(100)}}
		if _, err := produce.Run(t.Context(), []*Sender{b.sender(5)}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Begin("b"); err != nil {
			t.Fatal(err)
		}
		b.finish()
		r := c.Result()
		addUp(t, r)
		if names := r.PhaseNames(); !slices.Equal(names, []string{"a", "b"}) || r.Topics[0].Phases["a"].Counts["due"] != 100 || r.Topics[0].Counts["due"] != 100 {
			t.Errorf("%v: due %d of %d", names, r.Topics[0].Phases["a"].Counts["due"], r.Topics[0].Counts["due"])
		}
	})
}

// Requests that wait for their replies when a window ends are under way, whether they are answered later or never.
func TestRequestsThatAreUnderWayAtTheEndOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, memory.Config{Features: memory.Log()}, "")
		c := o.run.NewCollector()
		defer c.Close()
		consumer := o.consumer(driver.ConsumerConfig{})
		s := o.sender(100)
		if _, err := c.Begin(result.Measure); err != nil {
			t.Fatal(err)
		}
		var asking, serving sync.WaitGroup
		for n := range 10 {
			asking.Go(func() {
				_, err := s.Request(t.Context(), 5*time.Second, driver.Message{Body: []byte("?")}, Timing{Due: driver.Now()}, o.replies)
				if (err == nil) != (n < 4) {
					t.Errorf("request %d: %v", n, err)
				}
			})
			synctest.Wait() // in this order
		}
		time.Sleep(time.Second)
		if _, err := c.Begin("rest"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := 0
		serving.Go(func() {
			o.serve(ctx, consumer, func(m driver.Message) error {
				if served++; served > 4 {
					return nil
				}
				return consumer.Reply(ctx, o.at, m, driver.Message{Body: m.Body})
			})
		})
		asking.Wait()
		cancel()
		serving.Wait()
		o.close()
		if u := c.Result().Topics[0].Phases[result.Measure].Underway; u.Requests != 10 {
			t.Errorf("%+v", u)
		}
	})
}

// A process that only receives knows nothing of what is on its way, until it comes: then it is known what a window lacks. Where the parts are
// merged, it is the whole's.
func TestWhatOthersSentBeforeAWindowEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.process("test"), b.process("test")
		collectors := []*Collector{one.run.NewCollector(), two.run.NewCollector()}
		consumer := two.consumer(driver.ConsumerConfig{Group: "workers"})
		s := one.sender(1000)
		begin := func(name string) {
			for _, c := range collectors {
				if _, err := c.Begin(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(time.Second)
		begin(result.Measure)
		one.produce(s, 300)
		two.receive(consumer, 200)
		time.Sleep(time.Second)
		begin("rest")
		two.receive(consumer, 100)
		time.Sleep(time.Second)
		one.end()
		two.end()
		alone := collectors[1].Result()
		merged, err := result.Merge([]result.Part{one.part("one", collectors[0]), two.part("two", collectors[1])}, result.Siblings{Processes: 2})
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*result.Result{"alone": alone, "merged": merged} {
			if u := r.Topics[0].Phases[result.Measure].Underway; u.Deliveries != 100 {
				t.Errorf("%s: %+v", name, u)
			}
		}
	})
}
