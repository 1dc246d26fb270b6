package peers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
)

// place is a broker in memory, under virtual time, where processes meet.
type place struct {
	*testing.T
	address *driver.Address
	broker  *memory.Broker
	conn    driver.Conn
	count   int
	anchors []clock.Anchor // of the processes; none: each is on a machine of its own
}

var names atomic.Int64

func newPlace(t *testing.T, count int, c memory.Config) *place {
	t.Helper()
	c.Name = fmt.Sprintf("peers%d", names.Add(1))
	broker := memory.New(c)
	driver.Register(broker.Driver())
	address, err := driver.ParseURL(broker.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := address.Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return &place{T: t, address: address, broker: broker, conn: conn, count: count}
}

// open starts one of the processes. Its clock is that of the test, but for what skewed makes of it.
func (at *place) open(index int, instance uint32, skewed func(int64) int64) *Peers {
	at.Helper()
	var anchor clock.Anchor
	if at.anchors != nil {
		anchor = at.anchors[index]
	}
	p, err := open(at.Context(), Config{
		Run: 7, Instance: instance, Index: index, Count: at.count, Name: fmt.Sprint("p", index+1), Wait: 10 * time.Second,
		Conn: at.conn, Address: at.address, Topic: "orders",
	}, anchor, skewed)
	if err != nil {
		at.Fatal(err)
	}
	return p
}

func (at *place) close(all ...*Peers) {
	at.Helper()
	var closing sync.WaitGroup
	for _, p := range all {
		closing.Go(func() {
			if err := p.Close(context.Background()); err != nil {
				at.Error(err)
			}
		})
	}
	closing.Wait()
	for i := range at.count {
		topic := all[0].boxOf(i)
		if _, ok := at.conn.(driver.Admin); !ok || at.address.Driver.Features.Start == driver.StartNew {
			break
		}
		if _, err := at.conn.NewProducer(context.Background(), driver.ProducerConfig{Topic: topic, Window: 1}); at.address.Driver.KindOf(err) != driver.NotFound {
			at.Errorf("topic %s is still there: %v", topic, err)
		}
	}
	if err := at.conn.Close(context.Background()); err != nil {
		at.Error(err)
	}
}

// later is a clock that is ahead, and gains so many parts in a million.
func later(by time.Duration, ppm float64) func(int64) int64 {
	began := driver.Now()
	return func(now int64) int64 { return now + int64(by) + int64(float64(now-began)*ppm*1e-6) }
}

var kinds = map[string]driver.Features{"all": memory.Full(), "log": memory.Log(), "queue": memory.Queue(), "subject": memory.Subject()}

// Processes begin at one time, whenever each of them comes, and whatever their clocks say.
func TestAllCountFromOneTime(t *testing.T) {
	for name, features := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := newPlace(t, 3, memory.Config{Features: features, Transit: func(int64) time.Duration { return time.Millisecond }})
				offsets := []time.Duration{0, time.Second, -time.Hour}
				starts, all := make([]int64, at.count), make([]*Peers, at.count)
				var there sync.WaitGroup
				for i := range all {
					there.Go(func() {
						time.Sleep(time.Duration(i) * 1200 * time.Millisecond)
						all[i] = at.open(i, uint32(100+i), later(offsets[i], 0))
						time.Sleep(time.Duration(3-i) * time.Second)
						all[i].Reach("ready", 50*time.Millisecond)
						start, err := all[i].Await(t.Context(), "ready", nil)
						if err != nil {
							t.Error(err)
						}
						if late := all[i].now() - start; late > 0 {
							t.Errorf("process %d heard of it %v late", i, time.Duration(late))
						}
						starts[i] = start - int64(offsets[i])
					})
				}
				there.Wait()
				for i := range starts {
					if apart := time.Duration(starts[i] - starts[0]).Abs(); apart > 2*time.Millisecond {
						t.Errorf("processes 0 and %d begin %v apart", i, apart)
					}
				}
				at.close(all...)
			})
		})
	}
}

// However unlike the ways between two processes are, and whatever their clocks, the offset is within its bound.
func TestTheClocksAreWithinTheBound(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			r, jitter := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
			var mu sync.Mutex // of the jitter
			slow, quick := time.Duration(r.Int64N(int64(20*time.Millisecond))), time.Duration(r.Int64N(int64(time.Millisecond)))
			at := newPlace(t, 2, memory.Config{Features: memory.Log(), Transit: func(n int64) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return []time.Duration{quick, slow}[n%2] + time.Duration(jitter.ExpFloat64()*float64(time.Millisecond))
			}})
			ahead, ppm := time.Duration(r.Int64N(int64(2*time.Hour)))-time.Hour, (r.Float64()-0.5)*200
			theirs := later(ahead, ppm)
			a := at.open(0, 1, nil)
			time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
			b := at.open(1, 2, theirs)
			time.Sleep(time.Duration(1+r.IntN(20)) * time.Second)
			mine, yours := a.Known("")[0], b.Known("")[0]
			if !mine.Measured || !yours.Measured || mine.Same || mine.Clock.Messages == 0 {
				t.Fatalf("seed %d: %+v, %+v", seed, mine, yours)
			}
			off := func(now int64) int64 { return theirs(now) - now }
			if wrong := off(mine.Clock.At) - mine.Clock.By; wrong > mine.Clock.Bound || wrong < -mine.Clock.Bound {
				t.Errorf("seed %d: %+v, and it is %d", seed, mine.Clock, off(mine.Clock.At))
			}
			for _, now := range []int64{a.began, driver.Now()} {
				if o := off(now); o < mine.Clock.Least || o > mine.Clock.Most || -o < yours.Clock.Least || -o > yours.Clock.Most {
					t.Errorf("seed %d: it is %d, and %+v, and the other way %+v", seed, o, mine.Clock, yours.Clock)
				}
			}
			at.close(a, b)
		})
	}
}

// What both read of one machine's clock tells more than messages, unless these contradict it.
func TestOneMachineHasOneClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, 2, memory.Config{Transit: func(int64) time.Duration { return 5 * time.Millisecond }})
		for ahead, same := range map[int64]bool{int64(time.Millisecond): true, int64(time.Second): false} {
			at.anchors = []clock.Anchor{{Machine: "here", At: 1000, Error: 20}, {Machine: "here", At: 1000 + ahead, Error: 30}}
			a, b := at.open(0, 1, nil), at.open(1, 2, nil)
			time.Sleep(3 * time.Second)
			k := a.Known("")[0]
			if k.Same != same || same && (k.Clock.By != ahead || k.Clock.Bound != 50) || !same && (k.Clock.Least > 0 || k.Clock.Most < 0) {
				t.Errorf("%v: %+v", time.Duration(ahead), k)
			}
			_, _ = a.Close(t.Context()), b.Close(t.Context())
		}
	})
}

// Who does not come is named, once, and waited for no more.
func TestWhoDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, 4, memory.Config{Features: memory.Log()})
		a, b := at.open(0, 1, nil), at.open(1, 2, nil)
		c := at.open(2, 3, nil) // comes, and is never ready
		a.Reach("ready", 0)
		b.Reach("ready", 0)
		began := time.Now()
		_, err := a.Await(t.Context(), "ready", nil)
		if took := time.Since(began); took != a.Wait {
			t.Errorf("it waited %v", took)
		}
		for _, want := range []string{"process 3 of 4 (p3) came, and not to \"ready\" within 10s", "process 4 of 4 never came within 10s"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "process 2") {
			t.Error(err)
		}
		began = time.Now()
		b.Reach("done", 0)
		if err := a.Barrier(t.Context(), "done"); err != nil || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, err := b.Await(t.Context(), "ready", func(index int) bool { return index < 2 }); err != nil {
			t.Errorf("of two that are there: %v", err)
		}
		at.close(a, b, c)
	})
}

// One that ends before it is ready holds up nobody.
func TestWhoEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, 2, memory.Config{Features: memory.Log()})
		a, b := at.open(0, 1, nil), at.open(1, 2, nil)
		time.Sleep(time.Second)
		var closing sync.WaitGroup
		closing.Go(func() {
			time.Sleep(time.Second)
			if err := b.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		err := a.Barrier(t.Context(), "ready")
		if err == nil || !strings.Contains(err.Error(), `process 2 of 2 (p2) ended before it came to "ready"`) || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		closing.Wait()
		if k := a.Known("")[0]; k.Lacked == "" || !k.Measured {
			t.Errorf("%+v", k)
		}
		at.close(a)
	})
}

// Two processes that say to be the same one are named.
func TestTwins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, 2, memory.Config{Features: memory.Subject()})
		a, b, twin := at.open(0, 1, nil), at.open(1, 2, nil), at.open(1, 3, nil)
		time.Sleep(5 * time.Second)
		if k := a.Known("")[0]; k.Instance+k.Twin != 2+3 || k.Instance*k.Twin != 2*3 { // whichever was heard first
			t.Errorf("%+v", k)
		}
		at.close(a, b, twin)
	})
}

// A process that is started again in a test that goes on with one that ended is taken for its twin, and learns of that one. It says so, and not that the others
// never came.
func TestAProcessThatIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, 2, memory.Config{Features: memory.Subject()})
		a, b := at.open(0, 1, nil), at.open(1, 2, nil)
		time.Sleep(2 * time.Second)
		b.stop() // it is killed
		again := at.open(1, 3, nil)
		again.Reach("ready", 0)
		_, err := again.Await(t.Context(), "ready", nil)
		const want = "process 1 of 2 had met another process that was number 2 (instance 2), and did not take this one for it within 10s: this one was started again"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if k := a.Known("")[0]; k.Instance != 2 || k.Twin != 3 {
			t.Errorf("%+v", k)
		}
		at.close(a, b, again)
	})
}

// Who waits for the others to be done waits as long as they take, and for nobody who has left, never came or was killed.
func TestWhoIsThereIsOutlasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, 5, memory.Config{Features: memory.Full(), Transit: func(int64) time.Duration { return time.Millisecond }})
		waits, slow, leaves, killed := at.open(0, 100, nil), at.open(1, 101, nil), at.open(2, 102, nil), at.open(3, 103, nil)
		began := driver.Now()
		passed := func() time.Duration { return time.Duration(driver.Now() - began) }
		outlast := func(point string) {
			t.Helper()
			if err := waits.Outlast(t.Context(), point); err != nil {
				t.Error(err)
			}
		}
		go func() {
			time.Sleep(5 * time.Second)
			if err := leaves.Close(context.Background()); err != nil {
				t.Error(err)
			}
			killed.stop()
			time.Sleep(2 * time.Minute) // more than a point is waited for
			slow.Reach("done", 0)
		}()
		outlast("done")
		if took := passed(); took < 125*time.Second || took > 126*time.Second {
			t.Errorf("the slow one was waited for for %v", took)
		}
		began = driver.Now()
		go func() {
			time.Sleep(3 * time.Second)
			slow.stop()
		}()
		outlast("never")
		if took := passed(); took < silence || took > silence+5*time.Second {
			t.Errorf("one that was killed was waited for for %v", took)
		}
		for _, of := range waits.Known("") {
			if of.Lacked != "" {
				t.Errorf("process %d lacks: %s", of.Index, of.Lacked)
			}
		}
		at.close(waits, slow, killed)
	})
}
