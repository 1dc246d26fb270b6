package engine

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/capacity"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// searched is a broker in memory whose capacity is searched for, through the engine, the result and its verdict.
type searched struct {
	service func(r *rand.Rand) func(int64) time.Duration
	late    func(rate int64) time.Duration // how much later than it wants to the generator wakes; nil is never
	warm    time.Duration
	window  time.Duration
}

// probe runs the engine at a rate under virtual time.
func (s searched) probe(t *testing.T, rate int64, seed uint64, objectives []measure.Objective) (answer capacity.Answer, why string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: s.service(rand.New(rand.NewPCG(seed, 3)))})
		if s.late != nil {
			timer := b.run.sleep
			b.run.sleep = func(ctx context.Context, until int64) error { return timer(ctx, until+int64(s.late(rate))) }
		}
		collector := b.run.NewCollector()
		sender := b.sender(1 << 20)
		if _, err := collector.Begin(result.WarmUp); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for n := 1; ; n++ {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return
				}
				if time.Duration(n)*time.Second == s.warm {
					if _, err := collector.Begin(result.Measure); err != nil {
						t.Error(err)
					}
					continue
				}
				collector.Collect()
			}
		}()
		arrivals := func() schedule.Schedule {
			return schedule.Poisson(schedule.Constant(schedule.Rate{Events: rate, Per: time.Second}, s.warm+s.window), seed)
		}
		if _, err := (Produce{Schedule: arrivals, Payload: payload.Spec{Size: payload.Fixed(64)}}).Run(t.Context(), []*Sender{sender}); err != nil {
			t.Error(err)
		}
		stop()
		<-stopped
		b.finish()
		r := collector.Result()
		verdict.Judge(r, verdict.Circumstances{WarmUp: s.warm})
		var err error
		if answer, why, err = capacity.Judge(r, objectives); err != nil {
			t.Error(err)
		}
	})
	return answer, why
}

// search looks for the capacity, by seeds of its own for each probe.
func (s searched) search(t *testing.T, seed uint64, objective string) (o capacity.Outcome, whys []string) {
	t.Helper()
	parsed, err := measure.ParseObjective(objective)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	o, err = capacity.Search{From: 100, To: 2000, Width: 0.05, Confidence: 0.95, Probes: 100}.Run(t.Context(), func(_ context.Context, rate int64) (capacity.Answer, error) {
		n++
		answer, why := s.probe(t, rate, seed*1000+n, []measure.Objective{parsed})
		whys = append(whys, why)
		return answer, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return o, whys
}

func always(d time.Duration) func(*rand.Rand) func(int64) time.Duration {
	return func(*rand.Rand) func(int64) time.Duration { return func(int64) time.Duration { return d } }
}

// The interval that is found through the engine has the rate of queueing theory. Those of M/M/1 are fewer than of queues that are only simulated,
// in package capacity: one sends a million messages.
func TestTheCapacityOfABrokerIsThatOfTheory(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for _, c := range []struct {
		name      string
		of        searched
		objective string
		want      float64
		seeds     uint64
	}{
		{"M/D/1", searched{service: always(service), warm: 2 * time.Second, window: 10 * time.Second}, "publish_latency mean < 5ms", 1000 * 8. / 9, 20},
		{"M/M/1", searched{service: func(r *rand.Rand) func(int64) time.Duration {
			return func(int64) time.Duration { return time.Duration(r.ExpFloat64() * float64(service)) }
		}, warm: 5 * time.Second, window: 25 * time.Second}, "publish_latency mean < 10ms", 900, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if raced {
				c.seeds = 1
			}
			for seed := range c.seeds {
				o, whys := c.of.search(t, seed, c.objective)
				if o.Finding != capacity.Found || float64(o.Low) > c.want || float64(o.High) < c.want || float64(o.High) > 1.2*float64(o.Low) {
					t.Errorf("seed %d: %v %d to %d after %d probes, want %.1f between them", seed, o.Finding, o.Low, o.High, len(whys), c.want)
				}
			}
		})
	}
}

// A server that takes ever longer does not meet an objective at any rate: its latency grows.
func TestABrokerThatSlowsDownHasNoCapacity(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	slowing := searched{service: func(*rand.Rand) func(int64) time.Duration {
		start := driver.Now()
		return func(int64) time.Duration { return service + time.Duration(driver.Now()-start)/20_000 } // a millisecond more in 20 s
	}, warm: 2 * time.Second, window: 16 * time.Second}
	for seed := range uint64(3) {
		o, whys := slowing.search(t, seed, "publish_latency p90 < 20ms")
		if o.Finding != capacity.TooLittle || !strings.Contains(whys[0], "grew") {
			t.Errorf("seed %d: %v %d to %d: %q", seed, o.Finding, o.Low, o.High, whys)
		}
	}
}

// A generator that is late from some rate on ends first, and one that is always late at once: neither is the broker's capacity.
func TestAGeneratorThatIsTooSlowEndsFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for _, c := range []struct {
		from int64 // the rate from which on it is late
		low  bool  // the broker is known to meet the objective up to that
	}{{400, true}, {0, false}} {
		s := searched{service: always(service), warm: 2 * time.Second, window: 4 * time.Second, late: func(rate int64) time.Duration {
			if rate < c.from {
				return 0
			}
			return 30 * time.Millisecond
		}}
		o, _ := s.search(t, 1, "publish_latency p50 < 5ms")
		if o.Finding != capacity.GeneratorFirst || (o.Low > 0) != c.low || o.Low > c.from || c.low && o.High < c.from {
			t.Errorf("late from %d on: %v %d to %d", c.from, o.Finding, o.Low, o.High)
		}
	}
}
