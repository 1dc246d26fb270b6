package load

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// The broker and its answers are 60 ms away, and it keeps nothing. A subscriber leaves 10 ms after a burst was sent, when none of it is confirmed. It waits for that: what was
// sent before it left is drained, what never came of it, and of what was sent before, is lost, to the message, and what was sent after it is none of its.
// Where no answer comes in time, it is not known.
func TestASubscriberThatLeavesWaitsForWhatIsInFlight(t *testing.T) {
	const burst, second = 40, time.Second
	answered := memory.Subject()
	answered.Confirm, answered.Async = driver.Accepted, true
	for _, c := range []struct {
		name             string
		answer           time.Duration
		drops            uint64 // of those before, and of those in flight
		drained, unknown uint64
	}{
		{"all comes", 120 * time.Millisecond, 0, burst, 0},
		{"some are dropped", 120 * time.Millisecond, 3, burst - 3, 0},
		{"no answer comes", 20 * time.Second, 0, 0, burst},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := 120 * time.Millisecond
				b := newBench(t, memory.Config{
					Features: answered, Servers: 10 * burst, Service: func(int64) time.Duration { return service },
					Transit: func(int64) time.Duration { return 60 * time.Millisecond },
				})
				leaves := b.consumer(driver.ConsumerConfig{})
				leaves.consumer = lossy{leaves.consumer, func(m driver.Message) bool {
					var s Stamp
					if s.take(&m, b.run.ID) != nil {
						t.Error("a message without a stamp")
					}
					return s.Sequence%burst < c.drops
				}}
				s := b.sender(1000)
				b.produce(s, burst)
				time.Sleep(second)
				b.receive(leaves, burst-int(c.drops))
				service = c.answer
				var sending sync.WaitGroup
				sending.Go(func() { b.produce(s, burst) })
				time.Sleep(10 * time.Millisecond)
				if err := leaves.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				sending.Wait()
				service = 0
				b.produce(s, burst) // to nobody
				b.finish()
				a := b.only()
				want := result.Account{Lost: 2 * c.drops, Uncertain: c.unknown}
				if a.Expected != 2*burst || a.Drained != c.drained || a.Lost != want.Lost || a.Uncertain != want.Uncertain {
					t.Errorf("expected %d, drained %d, lost %d, uncertain %d; want %d, %d, %d, %d", a.Expected, a.Drained, a.Lost, a.Uncertain,
						2*burst, c.drained, want.Lost, want.Uncertain)
				}
			})
		})
	}
}

// A process sends six messages a second over a link of 700 ms, and a subscriber in another one leaves. Of what was sent less than that before it left nobody knows
// whether it came to the broker in time: it is uncertain and not lost. What was sent before and never came is lost.
func TestWhatMayHaveComeAfterASubscriberLeftIsNotLost(t *testing.T) {
	const transit = 700 * time.Millisecond
	for _, confirm := range []driver.Confirm{driver.Unconfirmed, driver.Accepted} {
		for _, drops := range []uint64{0, 2} {
			synctest.Test(t, func(t *testing.T) {
				features := memory.Subject()
				features.Confirm, features.Async = confirm, true
				config := memory.Config{Features: features, Transit: func(int64) time.Duration { return transit }}
				if confirm == driver.Accepted { // it is in the confirmation, too
					config.Transit, config.Servers, config.Service = nil, 100, config.Transit
				}
				b := newBench(t, config)
				one, two := b.sibling("one"), b.sibling("two")
				x := &crossing{T: t, sent: map[messageID]int64{}, dropped: map[messageID]bool{}}
				c := one.consumer(driver.ConsumerConfig{})
				c.consumer = lossy{c.consumer, func(m driver.Message) bool {
					var s Stamp
					return s.take(&m, one.run.ID) != nil || s.Sequence >= 6 && s.Sequence < 6+drops
				}}
				s := two.sender(100)
				var sending sync.WaitGroup
				sending.Go(func() {
					for range 24 {
						s.Send(t.Context(), driver.Batch{{Body: []byte("x")}}, Timing{}, func(all []Receipt) {
							x.mu.Lock()
							defer x.mu.Unlock()
							x.sent[messageID{s.id, all[0].Sequence}] = all[0].Sent
						})
						time.Sleep(time.Second / 6)
					}
				})
				ctx, stop := context.WithTimeout(t.Context(), 2950*time.Millisecond)
				defer stop()
				var received uint64
				for in := NewBuffer(10); ctx.Err() == nil; {
					n, err := c.Receive(ctx, in)
					if err != nil {
						t.Error(err)
					}
					c.HandOver(in, n)
					received += uint64(n)
				}
				before := uint64(0)
				for _, at := range x.sent {
					if at < driver.Now() {
						before++
					}
				}
				if err := c.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				sending.Wait()
				time.Sleep(time.Second)
				r := together(t, result.Siblings{Processes: 2}, one.end(), two.end())
				a := r.Topics[0].Groups[0].Account
				if confirm == driver.Accepted { // what is under way has no receipt yet
					before = a.Expected
				}
				if a.Expected != before || a.Expected != 18 || a.Lost != drops || a.Received != received || a.Uncertain == 0 || a.Uncertain != a.Doubted ||
					a.Received+a.Drained+a.Lost+a.Uncertain != a.Expected || !r.says("just when a consumer came or left") {
					t.Errorf("%v, %d dropped, %d sent before it left: %+v; %q", confirm, drops, before, a, r.Verdict.Reasons)
				}
			})
		}
	}
}

// pushed is a consumer at the end of a link: what a server gives it is on its way to it for some time, and gone when it closes. It stops by telling the server, which
// gives it more until it hears of that.
type pushed struct {
	driver.Consumer
	link    time.Duration // one way
	stop    context.CancelFunc
	stopped chan struct{} // the server gives no more

	mu      sync.Mutex
	came    driver.Batch
	arrives []time.Time
}

func push(t *testing.T, c driver.Consumer, link time.Duration) *pushed {
	ctx, stop := context.WithCancel(t.Context())
	p := &pushed{Consumer: c, link: link, stop: stop, stopped: make(chan struct{})}
	go func() {
		defer close(p.stopped)
		for b := make(driver.Batch, 1); ctx.Err() == nil; {
			n, err := c.Receive(ctx, b)
			if err != nil {
				continue
			}
			p.mu.Lock()
			p.came = append(p.came, b[:n]...)
			p.arrives = append(p.arrives, time.Now().Add(link))
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *pushed) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		n := 0
		for ; n < min(len(b), len(p.came)) && !time.Now().Before(p.arrives[n]); n++ {
			b[n] = p.came[n]
			b[n].Received = driver.Now()
		}
		p.came, p.arrives = p.came[n:], p.arrives[n:]
		p.mu.Unlock()
		if n > 0 {
			return n, nil
		}
	}
	return 0, ctx.Err()
}

func (p *pushed) Stop(ctx context.Context) error {
	time.Sleep(p.link)
	p.stop()
	<-p.stopped
	time.Sleep(p.link)
	return ctx.Err()
}

func (p *pushed) Close(ctx context.Context) error {
	p.stop()
	<-p.stopped
	return p.Consumer.Close(ctx)
}

// Two processes have members of one queue group, and the only one of the one leaves amid the load: it takes what the server gives it until that knows, and no more, so that
// nothing is lost and little is drained. The same with a link so slow that the server takes more than a second to know.
func TestTheLastMemberOfAProcessTakesWhatItWasGiven(t *testing.T) {
	for _, link := range []time.Duration{time.Millisecond, 40 * time.Millisecond, 700 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			features := memory.Subject()
			features.Groups = true
			b := newBench(t, memory.Config{Features: features})
			one, two := b.sibling("one"), b.sibling("two")
			leaves, stays := one.consumer(driver.ConsumerConfig{Group: "workers"}), two.consumer(driver.ConsumerConfig{Group: "workers"})
			leaves.consumer, stays.consumer = push(t, leaves.consumer, link), push(t, stays.consumer, link)
			var all sync.WaitGroup
			read := func(c *Consumer, d time.Duration) {
				ctx, stop := context.WithTimeout(t.Context(), d)
				defer stop()
				for in := NewBuffer(100); ctx.Err() == nil; {
					n, err := c.Receive(ctx, in)
					if err != nil {
						t.Error(err)
					}
					c.HandOver(in, n)
				}
			}
			all.Go(func() { one.send(one.sender(100), 100, 8*time.Second) })
			all.Go(func() { two.send(two.sender(100), 100, 8*time.Second) })
			all.Go(func() { read(stays, 10*time.Second) })
			read(leaves, 3*time.Second+time.Millisecond/2)
			before := driver.Now()
			if err := leaves.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			took := time.Duration(driver.Now() - before)
			all.Wait()
			r := together(t, result.Siblings{Processes: 2}, one.end(), two.end())
			a := r.Topics[0].Groups[0].Account
			// Of 200 a second it is given all, at most, until the server knows, and has on the link what came before.
			if most := uint64(2*200*link/time.Second) + 2; a.Expected != 1600 || a.Lost+a.Uncertain != 0 || a.Drained > most || took > 2*link+3*drainPoll {
				t.Errorf("a link of %v: it took %v, %+v; want no more than %d drained", link, took, a, most)
			}
		})
	}
}

// What a subscriber could not wait for is as unknown to all processes together as it is to its own.
func TestTheWholeKnowsWhatASubscriberCouldNotWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered := memory.Subject()
		answered.Confirm, answered.Async = driver.Accepted, true
		b := newBench(t, memory.Config{Features: answered, Servers: 100, Service: func(int64) time.Duration { return 20 * time.Second }})
		one, two := b.sibling("one"), b.sibling("two")
		leaves := one.consumer(driver.ConsumerConfig{})
		var sending sync.WaitGroup
		sending.Go(func() { one.produce(one.sender(100), 40) })
		time.Sleep(10 * time.Millisecond)
		before := driver.Now()
		if err := leaves.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		took := time.Duration(driver.Now() - before)
		sending.Wait()
		r := together(t, result.Siblings{Processes: 2}, one.end(), two.end())
		if got, want := r.fates(t), (fates{expected: 40, uncertain: 40}); got != want || took > defaultPatience+time.Second {
			t.Errorf("%+v, want %+v; it took %v", got, want, took)
		}
	})
}
