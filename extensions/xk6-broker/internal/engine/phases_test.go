package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// addUp checks that the windows of a topic are the whole, bit by bit.
func addUp(t *testing.T, r *result.Result) {
	t.Helper()
	for i := range r.Topics {
		of := &r.Topics[i]
		if len(of.Phases) != len(r.Phases) || len(of.Phases) == 0 {
			t.Fatalf("%d windows of %d phases", len(of.Phases), len(r.Phases))
		}
		counts, trends, failed := map[string]int64{}, map[string]*hist.Histogram{}, result.Topic{}
		groups := map[string]*result.WindowGroup{}
		for _, g := range of.Groups {
			groups[g.Group] = &result.WindowGroup{Trends: map[string]*hist.Histogram{}}
		}
		for _, w := range of.Phases {
			for name, n := range w.Counts {
				counts[name] += n
			}
			for name, h := range w.Trends {
				trends[name] = hist.Merged(trends[name], h)
			}
			for _, e := range w.Errors {
				failed.Errors = recording.AddErrors(failed.Errors, e)
			}
			for _, g := range w.Groups {
				sum := groups[g.Group]
				for name, h := range g.Trends {
					sum.Trends[name] = hist.Merged(sum.Trends[name], h)
				}
			}
		}
		whole := maps.Clone(of.Counts)
		maps.DeleteFunc(whole, func(_ string, n int64) bool { return n == 0 })
		if !maps.Equal(counts, whole) {
			t.Errorf("counts: %v, of the whole %v", counts, whole)
		}
		if !slices.Equal(failed.Errors, of.Errors) {
			t.Errorf("errors: %v, of the whole %v", failed.Errors, of.Errors)
		}
		sameTrends(t, trends, of.Trends)
		for _, g := range of.Groups {
			sum := groups[g.Group]
			sameTrends(t, sum.Trends, g.Trends)
		}
	}
}

func sameTrends(t *testing.T, got, want map[string]*hist.Histogram) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("trends: %v, of the whole %v", g, w)
	}
	for name, h := range want {
		sameText(t, name, got[name], h)
	}
}

// Whatever a run does, and whenever it is cut, its phases add up to it.
func TestPhasesAddUpToTheWhole(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				service := make([]time.Duration, 997)
				for i := range service {
					service[i] = time.Duration(random.ExpFloat64() * float64(time.Millisecond))
				}
				b := newBench(t, memory.Config{Service: func(n int64) time.Duration { return service[n%int64(len(service))] }})
				c := b.run.NewCollector()
				loop, err := Consume{Batch: 1 + random.IntN(50), Idle: 2 * time.Second}.Resolve(b.topic.Address.Driver.Features)
				if err != nil {
					t.Fatal(err)
				}
				b.series = b.run.Series(Labels{Broker: b.topic.Address.String(), Driver: b.topic.Address.Driver.Name, Topic: "orders", Group: "workers"})
				consumer := b.consumer(driver.ConsumerConfig{Group: "workers"})
				b.series = b.run.Series(Labels{Broker: b.topic.Address.String(), Driver: b.topic.Address.Driver.Name, Topic: "orders"})
				var all sync.WaitGroup
				all.Go(func() {
					if _, err := loop.Run(t.Context(), []*Consumer{consumer}); err != nil {
						t.Error(err)
					}
				})
				for range 1 + random.IntN(3) {
					p := Produce{Payload: payload.Spec{Size: payload.Fixed(100)}, Duration: time.Duration(1+random.IntN(4)) * time.Second, Count: 3000}
					if random.IntN(2) == 0 {
						p.Schedule = constant(int64(100+random.IntN(900)), p.Duration)
					}
					window := 1 + random.IntN(20)
					all.Go(func() {
						if _, err := p.Run(t.Context(), []*Sender{b.sender(window)}); err != nil {
							t.Error(err)
						}
					})
				}
				for n := range random.IntN(12) {
					time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
					switch random.IntN(3) {
					case 0:
						c.Collect()
					default:
						b.series.Fail("send", driver.Timeout)
						if _, err := c.Begin(fmt.Sprint("phase ", n%4)); err != nil {
							t.Error(err)
						}
					}
				}
				if _, err := c.Begin("last"); err != nil {
					t.Error(err)
				}
				all.Wait()
				b.finish()
				r := c.Result()
				if r.Topics[0].Counts["received"] == 0 {
					t.Fatal("nothing was received")
				}
				addUp(t, r)
			})
		})
	}
}

// A cut is exact: of a broker that takes 2 ms for each of 1,000 messages a second, the phase from 3.0005 s to 7.0005 s has what was confirmed
// then, and no more, whichever second the collections were at.
func TestACutIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return 0 }})
		c := b.run.NewCollector()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := (Produce{Schedule: constant(1000, 10*time.Second), Payload: payload.Spec{Size: payload.Fixed(100)}}).Run(t.Context(), []*Sender{b.sender(1)}); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		until := func(at time.Duration) { time.Sleep(at - time.Since(began)) }
		until(300500 * time.Microsecond)
		c.Collect()
		until(3000500 * time.Microsecond)
		before, err := c.Begin("measured")
		if err != nil || len(before) != 1 || before[0].Counters[recording.Confirmed] != 2700 {
			t.Fatalf("what is of the phase before: %v, %v", before, err)
		}
		until(5 * time.Second)
		c.Collect()
		if again, err := c.Begin("measured"); err != nil || again != nil {
			t.Errorf("the phase that goes on was begun again: %v, %v", again, err)
		}
		until(7000500 * time.Microsecond)
		if _, err := c.Begin("after"); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		b.finish()
		r := c.Result()
		addUp(t, r)
		if names := r.PhaseNames(); !slices.Equal(names, []string{"start", "measured", "after"}) || r.Leading != "measured" {
			t.Errorf("the phases are %v, and %q leads", names, r.Leading)
		}
		w := r.Topics[0].Phases["measured"]
		if w.Counts["confirmed"] != 4000 || w.Counts["due"] != 4000 || w.Trends["publish_latency"].Count() != 4000 {
			t.Errorf("%v, %d latencies", w.Counts, w.Trends["publish_latency"].Count())
		}
		if s := r.Phase("measured").Stretches; len(s) != 1 || s[0] != (result.Stretch{From: 3.0005, To: 7.0005}) {
			t.Errorf("it was %v", s)
		}
		during, ok := c.During("measured")
		if !ok || during[b.series].Counters[recording.Confirmed] != 4000 {
			t.Errorf("during the phase: %v", during[b.series].Counters)
		}
		if _, ok := c.During("never"); ok {
			t.Error("there is a phase that never was")
		}
	})
}

// A message that is due in one phase and confirmed in the next has its latency in the first and is counted in the second. A phase that
// comes again goes on.
func TestPhases_ConfirmedInTheNextPhase_LatencyOfTheFirstCountOfTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return 700 * time.Millisecond }})
		c := b.run.NewCollector()
		var all sync.WaitGroup
		begin := func(name string) {
			if _, err := c.Begin(name); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		began := time.Now()
		begin("a")
		all.Go(func() { // one message a second, the first at once, confirmed 0.7 s later
			if _, err := (Produce{Schedule: constant(1, 4*time.Second), Payload: payload.Spec{Size: payload.Fixed(100)}}).Run(t.Context(), []*Sender{b.sender(10)}); err != nil {
				t.Error(err)
			}
		})
		for at, name := range map[time.Duration]string{500 * time.Millisecond: "b", 2500 * time.Millisecond: "a"} {
			all.Go(func() {
				time.Sleep(at - time.Since(began))
				begin(name)
			})
		}
		all.Wait()
		b.finish()
		r := c.Result()
		addUp(t, r)
		for name, want := range map[string][3]int64{"a": {2, 2, 2}, "b": {2, 2, 2}} { // due at 0 and 3, at 1 and 2; confirmed at 2.7 and 3.7, at 0.7 and 1.7
			w := r.Topics[0].Phases[name]
			latencies := int64(0)
			if h := w.Trends["publish_latency"]; h != nil {
				latencies = int64(h.Count()) //gosec:disable G115 -- a few
			}
			if got := [3]int64{w.Counts["due"], latencies, w.Counts["confirmed"]}; got != want {
				t.Errorf("phase %s: due, latencies and confirmed %v, want %v", name, got, want)
			}
		}
		if s := r.Phase("a").Stretches; len(s) != 2 {
			t.Errorf("phase a: %v", s)
		}
	})
}

// Little's law holds in a phase: as many messages are under way on average as come in a second, by how long each takes.
func TestPhases_LittlesLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 1))
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return time.Duration(random.ExpFloat64() * float64(service)) }})
		c := b.run.NewCollector()
		var all sync.WaitGroup
		all.Go(func() {
			p := Produce{Schedule: func() schedule.Schedule {
				return schedule.Poisson(schedule.Constant(schedule.Rate{Events: 800, Per: time.Second}, 40*time.Second), 1)
			}, Payload: payload.Spec{Size: payload.Fixed(100)}}
			if _, err := p.Run(t.Context(), []*Sender{b.sender(1 << 20)}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(5 * time.Second)
		if _, err := c.Begin("measured"); err != nil {
			t.Fatal(err)
		}
		var underway float64
		const looks = 30_000
		for range looks {
			time.Sleep(time.Millisecond)
			underway += float64(b.series.Count(recording.Due)-b.series.Count(recording.Confirmed)) / looks
		}
		if _, err := c.Begin("after"); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		b.finish()
		w := c.Result().Topics[0].Phases["measured"]
		if want := float64(w.Counts["due"]) / 30 * w.Trends["publish_latency"].Mean() / float64(time.Second); math.Abs(underway-want) > 0.02*want {
			t.Errorf("%.3f messages are under way on average, and by Little's law %.3f", underway, want)
		}
	})
}

func TestThereAreNotTooManyPhases(t *testing.T) {
	c := NewRun("", 0).NewCollector()
	if _, err := c.Begin(""); err == nil {
		t.Error("a phase has no name")
	}
	for n := 1; n < mostPhases; n++ {
		if _, err := c.Begin(fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Begin("one more"); !errors.Is(err, errPhases) {
		t.Errorf("%d phases: %v", mostPhases+1, err)
	}
	for n := mostPhases; n <= mostCuts; n++ {
		if _, err := c.Begin(fmt.Sprint(1 + n%2)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Begin("3"); !errors.Is(err, errPhases) {
		t.Errorf("%d cuts: %v", mostCuts+1, err)
	}
}

// Each byte records, collects or cuts; however they follow one another, the phases add up.
func FuzzPhasesAddUp(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 11, 12, 13, 14, 15, 255, 251, 0, 0, 252, 7, 250})
	f.Add([]byte{250, 250, 7, 251, 7, 7, 250, 255, 251})
	broker := memory.New(memory.Config{Name: fmt.Sprintf("memory%d", addresses.Add(1))})
	driver.Register(broker.Driver())
	address, err := driver.ParseURL(broker.URL(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 100 {
			return
		}
		run := NewRun("", 0)
		topic := run.Topic(address, "orders")
		topic.Use("producer", map[string]any{})
		c := run.NewCollector()
		a := run.Series(Labels{Broker: address.String(), Driver: address.Driver.Name, Topic: "orders"})
		b := run.Series(Labels{Broker: address.String(), Driver: address.Driver.Name, Topic: "orders", Tags: 1})
		if _, err := c.Begin("first"); err != nil {
			t.Fatal(err)
		}
		dues := []int64{driver.Now()}
		for i, op := range ops {
			s := []*Series{a, b}[i%2]
			due := dues[int(op)%len(dues)]
			switch {
			case op >= 253:
				c.Collect()
			case op >= 250:
				if _, err := c.Begin(fmt.Sprint("phase ", op)); err != nil {
					t.Fatal(err)
				}
				dues = append(dues, driver.Now())
			case op >= 240:
				s.Fail("send", driver.Kind(fmt.Sprint(op%3)))
			case op >= 200:
				s.add(recording.Counter(op%recording.NumCounters), int64(op))
			case op >= 190:
				s.record(0, recording.Closed, recording.E2ETime, due, -int64(op))
			case op >= 180:
				s.record(0, recording.Open, recording.SettleTime, due, hist.Highest+int64(op))
			default:
				ns := int64(op)<<(i%40) + int64(i)
				s.at(due).trends[i%recording.NumLoops][int(op)%recording.NumTrends].RecordN(uint32(i), ns, uint64(1+i%5))
			}
		}
		addUp(t, c.Result())
	})
}

// The phases of several processes add up to the whole, where all had the same ones; else the whole has none, and says so.
func TestPhasesOfProcessesAddUp(t *testing.T) {
	for _, c := range []struct{ one, two string }{{"measured", "measured"}, {"measured", "peak"}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			one, two := b.process("test"), b.process("test")
			collectors := []*Collector{one.run.NewCollector(), two.run.NewCollector()}
			consumer := two.consumer(driver.ConsumerConfig{Group: "workers"})
			s, other := one.sender(100), two.sender(100)
			time.Sleep(time.Second)
			for _, collector := range collectors {
				if _, err := collector.Begin(result.WarmUp); err != nil {
					t.Fatal(err)
				}
			}
			one.produce(s, 300)
			two.produce(other, 50)
			two.receive(consumer, 350)
			for i, name := range []string{c.one, c.two} {
				if _, err := collectors[i].Begin(name); err != nil {
					t.Fatal(err)
				}
			}
			one.produce(s, 200)
			two.receive(consumer, 200)
			time.Sleep(time.Second)
			one.end()
			two.end()
			merged, err := verdict.Merge([]verdict.Part{one.part("one", collectors[0]), two.part("two", collectors[1])}, verdict.Siblings{Processes: 2})
			if err != nil {
				t.Fatal(err)
			}
			differ := reasontest.Has(merged.Verdict.Invalid(), "processes-differ why=phase")
			if c.one != c.two {
				if !differ {
					t.Errorf("phases %v, notes %q", merged.PhaseNames(), reasontest.Codes(merged.Verdict.Reasons))
				}
			} else {
				w := merged.Topics[0].Phases["measured"]
				if merged.Leading != "measured" || differ || w.Counts["confirmed"] != 200 {
					t.Errorf("%q leads, %v", merged.Leading, w.Counts)
				}
				for name, n := range merged.Topics[0].Counts { // of which the whole knows that they are none
					if n == 0 || name == "sibling" {
						delete(merged.Topics[0].Counts, name)
					}
				}
				for _, w := range merged.Topics[0].Phases {
					delete(w.Counts, "sibling")
				}
				addUp(t, merged)
			}
			if err := b.conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
