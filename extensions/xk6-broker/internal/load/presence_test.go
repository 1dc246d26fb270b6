package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
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

// crossing is a list of all that a process sent while a subscriber in another one came and went, and of what became of it on the way.
type crossing struct {
	*testing.T
	r *rand.Rand

	mu      sync.Mutex
	sent    map[messageID]int64
	dropped map[messageID]bool
	there   [][2]int64
}

// lockedSource is a source of chance for several goroutines.
type lockedSource struct {
	mu  sync.Mutex
	src rand.Source
}

func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.src.Uint64()
}

// send sends single messages for some time, so far apart in the mean.
func (x *crossing) send(from *sibling, mean, d time.Duration) {
	r := rand.New(rand.NewPCG(x.r.Uint64(), 1))
	s := from.sender(1000)
	for end := driver.Now() + int64(d); ; {
		time.Sleep(1 + time.Duration(r.ExpFloat64()*float64(mean)))
		if driver.Now() > end {
			return
		}
		s.Send(x.Context(), driver.Batch{{Body: []byte("x")}}, Timing{}, func(all []Receipt) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.sent[messageID{s.id, all[0].Sequence}] = all[0].Sent
		})
	}
}

// listen consumes for some time. Of what comes, one in twenty is dropped, and more of the last that it is there for.
func (x *crossing) listen(at *sibling, d time.Duration) {
	c := at.consumer(driver.ConsumerConfig{})
	from := driver.Now()
	c.consumer = lossy{c.consumer, func(m driver.Message) bool {
		var s Stamp
		if s.take(&m, at.run.ID) != nil {
			x.Error("a message without a stamp")
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		drops := x.r.IntN(20) == 0 || s.Sent > from+int64(d)*9/10 && x.r.IntN(3) == 0
		if drops {
			x.dropped[messageID{s.Producer, s.Sequence}] = true
		}
		return drops
	}}
	ctx, stop := context.WithDeadline(x.Context(), time.Now().Add(d))
	defer stop()
	for in := NewBuffer(100); ctx.Err() == nil; {
		n, err := c.Receive(ctx, in)
		if err != nil {
			x.Error(err)
		}
		c.HandOver(in, n)
	}
	x.there = append(x.there, [2]int64{from, driver.Now()})
	if err := c.Leave(x.Context()); err != nil {
		x.Error(err)
	}
}

// expected is how many messages were sent while the subscriber was there, how many of these never came, and how many of those were sent so shortly before it left that
// they may have been on their way to the broker then.
func (x *crossing) expected() (n, lost, doubted uint64) {
	for id, at := range x.sent {
		for _, p := range x.there {
			if at > p[0] && at <= p[1] {
				n++
				if x.dropped[id] {
					lost++
					if at > p[1]-int64(crossingTransit) {
						doubted++
					}
				}
			}
		}
	}
	return n, lost, doubted
}

// crossingTransit is the longest that a message takes.
const crossingTransit = 6 * time.Millisecond

// A subscriber comes and goes while another process sends, and before and after that. What was sent while it was there is expected of it, and what of that did not
// come is lost, to the last message: whatever cannot be known is uncertain, and of a test that sent little that is nothing but what may have been on its way when
// the subscriber left.
func TestASubscriberExpectsOfOthersWhatWasSentWhileItWasThere(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			x := &crossing{T: t, r: rand.New(&lockedSource{src: rand.NewPCG(seed, 2)}), sent: map[messageID]int64{}, dropped: map[messageID]bool{}}
			b := newBench(t, memory.Config{Features: memory.Subject(), Transit: func(n int64) time.Duration {
				return time.Duration(n) % (crossingTransit/time.Millisecond + 1) * time.Millisecond
			}})
			one, two := b.sibling("one"), b.sibling("two")
			many := seed%4 == 0
			mean := time.Duration(1+x.r.IntN(100)) * time.Millisecond
			if many {
				mean = 300 * time.Microsecond
			}
			var sending sync.WaitGroup
			for range 1 + x.r.IntN(3) {
				began, length := time.Duration(x.r.Int64N(int64(time.Second))), time.Second+time.Duration(x.r.Int64N(int64(3*time.Second)))
				sending.Go(func() {
					time.Sleep(began)
					x.send(two, mean, length)
				})
			}
			for range 1 + x.r.IntN(3) {
				time.Sleep(time.Duration(x.r.Int64N(int64(1500 * time.Millisecond))))
				x.listen(one, time.Duration(x.r.Int64N(int64(2*time.Second))))
			}
			sending.Wait()
			time.Sleep(time.Duration(x.r.Int64N(int64(time.Second)))) // it ends just after that, or not
			r := together(t, result.Siblings{Processes: 2}, one.end(), two.end())
			expected, lost, doubted := x.expected()
			a := r.Topics[0].Groups[0].Account
			if !many && (a.Expected != expected || a.Lost+a.Uncertain != lost || a.Uncertain > doubted || a.Uncertain != a.Doubted || r.says("cannot be told") != (a.Uncertain > 0)) {
				t.Errorf("seed %d: expected %d, lost %d, uncertain %d; want %d, %d and %d of %d: %v", seed, a.Expected, a.Lost, a.Uncertain, expected, lost, doubted, len(x.sent), r.Verdict.Reasons)
			}
			if many && (a.Lost > lost || a.Lost+a.Uncertain < lost || a.Expected < expected || a.Uncertain > 3*200+doubted || a.Uncertain != a.Doubted || r.says("cannot be told") != (a.Uncertain > 0)) {
				t.Errorf("seed %d: expected %d, lost %d, uncertain %d; want %d and %d of %d: %v", seed, a.Expected, a.Lost, a.Uncertain, expected, lost, len(x.sent), r.Verdict.Reasons)
			}
		})
	}
}

// Consumers are told that nothing more comes, and leave, when another process has yet to send: what it sends then nobody expects, and it is a reason. Where they
// leave when they like it is for a reader to know. Where one of them is there still, of a group, it is neither.
func TestWhatIsSentWhenAllConsumersHaveLeftIsNamed(t *testing.T) {
	groups := memory.Subject()
	groups.Groups = true
	for _, c := range []struct {
		told, stays  bool
		reason, note string
	}{
		{told: true, reason: "orders, workers: 30 messages (23 %) were sent after the last consumer had left"},
		{note: "orders, workers: 30 messages were confirmed when no consumer of it was there"},
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
			r := together(t, result.Siblings{Processes: 2}, one.end(), two.end())
			a := r.Topics[0].Groups[0].Account
			want := fates{expected: 100, received: 100}
			if c.stays {
				want = fates{expected: 130, received: 130}
			}
			if got := r.fates(t); got != want || (a.Late == 30) != (c.reason != "") || a.Late%30 != 0 {
				t.Errorf("%+v: %+v, want %+v", c, a, want)
			}
			if named := r.says("after the last consumer had left"); named != (c.reason != "") || !r.says(c.reason) || named == r.Verdict.Account || named == r.Verdict.Latencies {
				t.Errorf("%+v: %q", c, r.Verdict.Reasons)
			}
			if noted := r.notes("when no consumer of it was there"); noted != (c.note != "") || !r.notes(c.note) {
				t.Errorf("%+v: %q", c, r.Verdict.Notes)
			}
		})
	}
}

// A process whose result is not there is called by its number and name where another one met it: then it was of no earlier test.
func TestAMissingProcessThatOthersMetIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		one, two, gone := b.sibling("one"), b.sibling("two"), b.sibling("gone")
		consumer := one.consumer(driver.ConsumerConfig{})
		gone.send(gone.sender(100), 100, time.Second)
		one.receive(consumer, 100)
		parts := []result.Part{one.end(), two.end()}
		instance := gone.end().Result.Instance
		const unmet, met = "messages came from instance", "messages came from process 2 (gone), instance"
		if r := together(t, result.Siblings{Processes: 3}, parts...); !r.says(unmet, "if it was an earlier test") || r.says(met) {
			t.Error(r.Verdict.Reasons)
		}
		parts[1].Result.Peers = []result.Peer{{Process: 2, Name: "gone", Instance: instance, Twin: 7}}
		if r := together(t, result.Siblings{Processes: 3}, parts...); !r.says(met) || r.says(unmet) || r.says("earlier test") {
			t.Error(r.Verdict.Reasons)
		}
	})
}
