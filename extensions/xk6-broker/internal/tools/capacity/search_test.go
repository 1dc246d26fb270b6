package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// seeds is how many searches there are of each system.
func seeds() uint64 {
	if testing.Short() {
		return 2
	}
	return 10
}

// system answers probes. It is asked in the order of time.
type system func(r *rand.Rand) func(rate int64) Answer

// queue is a server with Poisson arrivals that takes a millisecond for a message, on average. Times are in milliseconds.
func queue(service func(*rand.Rand) float64, slower, seconds float64, holds func(sum, above, n float64) bool, limit float64) system {
	return func(r *rand.Rand) func(int64) Answer {
		slow := 1.0
		return func(rate int64) Answer {
			rho := float64(rate) / 1000
			end := 1000 * seconds
			var free, sum, above, n float64
			for now := r.ExpFloat64() / rho; now < end; now += r.ExpFloat64() / rho {
				if free = max(free, now) + service(r)*slow; now < end/6 {
					continue // the warm-up: the queue is empty at first
				}
				n++
				sum += free - now
				if free-now > limit {
					above++
				}
			}
			slow *= 1 + slower
			if holds(sum, above, n) {
				return Met
			}
			return Missed
		}
	}
}

func exponential(r *rand.Rand) float64 { return r.ExpFloat64() }
func constant(*rand.Rand) float64      { return 1 }

func meanBelow(limit float64) func(sum, above, n float64) bool {
	return func(sum, _, n float64) bool { return sum < limit*n }
}

func p99Below(_, above, n float64) bool { return above < 0.01*n }

var usual = Search{From: 50, Width: 0.05, Confidence: 0.95, Probes: 150}

// searched is the outcome of a search, and how many probes it took.
type searched struct {
	Outcome
	probes int
}

func (s Search) of(t *testing.T, seed uint64, made system) searched {
	t.Helper()
	answer := made(rand.New(rand.NewPCG(seed, 11)))
	probes := 0
	o, err := s.Run(t.Context(), func(_ context.Context, rate int64) (Answer, error) {
		probes++
		return answer(rate), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return searched{o, probes}
}

// The interval has the rate of queueing theory. It is wider than asked for if the probes near its ends contradict one another.
func TestSearch_Queue_CapacityOfTheory(t *testing.T) {
	for _, c := range []struct {
		name string
		of   system
		want float64 // messages a second
	}{
		{"M/M/1, mean < 10 ms", queue(exponential, 0, 60, meanBelow(10), 0), 1000 * (1 - 1./10)},
		{"M/M/1, p99 < 40 ms", queue(exponential, 0, 120, p99Below, 40), 1000 * (1 - math.Log(100)/40)},
		{"M/D/1, mean < 5 ms", queue(constant, 0, 30, meanBelow(5), 0), 1000 * 8. / 9}, // 1 + ρ/(2(1-ρ)) = 5, Pollaczek and Khinchine
		{"M/D/1, mean < 2 ms", queue(constant, 0, 30, meanBelow(2), 0), 1000 * 2. / 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			probes, narrow := 0, 0
			const seeds = 10
			for seed := range uint64(seeds) {
				o := usual.of(t, seed, c.of)
				probes += o.probes
				if float64(o.High) <= 1.05*float64(o.Low) {
					narrow++
				}
				if o.Finding != Found || float64(o.Low) > c.want || float64(o.High) < c.want {
					t.Errorf("seed %d: %v %d to %d after %d probes, want %.1f between them", seed, o.Finding, o.Low, o.High, o.probes, c.want)
				}
			}
			t.Logf("%d probes on average, %d of %d intervals have the width", probes/seeds, narrow, seeds)
			if narrow < seeds/2 {
				t.Errorf("%d of %d intervals are as narrow as asked for", narrow, seeds)
			}
		})
	}
}

// A server that slows down from probe to probe has no capacity; nor has one that becomes faster.
func TestAServerThatChangesHasNoCapacity(t *testing.T) {
	for _, by := range []float64{0.01, 0.03, -0.01} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			t.Parallel()
			for seed := range seeds() {
				if o := usual.of(t, seed, queue(constant, by, 10, meanBelow(5), 0)); o.Finding != NoSteadyState {
					t.Errorf("seed %d: %v %d to %d after %d probes", seed, o.Finding, o.Low, o.High, o.probes)
				}
			}
		})
	}
}

// knee is a system whose probes are met with a probability that falls around its capacity, as steeply as the slope says; some end by accident.
func knee(capacity, slope, accidents float64, above Answer) system {
	return func(r *rand.Rand) func(int64) Answer {
		return func(rate int64) Answer {
			met := r.Float64() < 1/(1+math.Pow(float64(rate)/capacity, 1/slope))
			if r.Float64() < accidents {
				met = !met
			}
			if met {
				return Met
			}
			return above
		}
	}
}

// first is what answers where it has anything against a rate, and else what follows it.
func first(a, b system) system {
	return func(r *rand.Rand) func(int64) Answer {
		one, other := a(r), b(r)
		return func(rate int64) Answer {
			if answer := one(rate); answer != Met {
				return answer
			}
			return other(rate)
		}
	}
}

// sometimes makes a share of the probes useless, whatever their rate.
func sometimes(share float64) system {
	return func(r *rand.Rand) func(int64) Answer {
		return func(int64) Answer {
			if r.Float64() < share {
				return Generator
			}
			return Met
		}
	}
}

func TestEveryAnswer(t *testing.T) {
	bounded := usual
	bounded.To = 400
	patient := usual
	patient.Probes = 300 // each that says nothing of the system is made three times
	for _, c := range []struct {
		name    string
		search  Search
		of      system
		finding Finding
		low     float64 // what the interval has; 0 is that it is open there
		high    float64
	}{
		{"a wall", usual, knee(900, 0.0001, 0, Missed), Found, 900, 900},
		{"a slope", usual, knee(900, 0.01, 0, Missed), Found, 900, 900},
		{"accidents", usual, knee(900, 0.002, 0.05, Missed), Found, 900, 900},
		{"a great rate", usual, knee(1_234_567, 0.002, 0.02, Missed), Found, 1_234_567, 1_234_567},
		{"a small rate", Search{From: 1, Width: 0.05, Confidence: 0.95, Probes: 100}, knee(7.5, 0.01, 0, Missed), Found, 7.5, 7.5},
		{"less than the lowest", usual, knee(40, 0.01, 0.02, Missed), TooLittle, 0, 40},
		{"more than the highest", bounded, knee(900, 0.01, 0.02, Missed), NotReached, 900, 0},
		{"within bounds", bounded, knee(300, 0.01, 0.02, Missed), Found, 300, 300},
		{"the generator", patient, first(knee(900, 0.0001, 0.01, Generator), knee(5000, 0.01, 0.01, Missed)), GeneratorFirst, 900, 900},
		{"the generator at once", usual, knee(40, 0.01, 0, Generator), GeneratorFirst, 0, 40},
		{"the system first", usual, first(knee(5000, 0.01, 0, Generator), knee(900, 0.01, 0.01, Missed)), Found, 900, 900},
		{"a machine that is busy at times", usual, first(sometimes(0.15), knee(900, 0.005, 0, Missed)), Found, 900, 900},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds() {
				o := c.search.of(t, seed, c.of)
				if o.Finding != c.finding || float64(o.Low) > c.low || (o.High == 0) != (c.high == 0) || o.High != 0 && float64(o.High) < c.high {
					t.Errorf("seed %d: %v %d to %d after %d probes", seed, o.Finding, o.Low, o.High, o.probes)
				}
			}
		})
	}
}

// The interval has the capacity as often as it says, at a confidence that is low enough to be seen.
func TestSearch_ConfidenceHolds(t *testing.T) {
	const searches = 400
	s := usual
	s.Confidence = 0.6
	wrong, found := 0, 0
	for seed := range uint64(searches) {
		o := s.of(t, seed, knee(900, 0.03, 0.02, Missed))
		if o.Finding != Found {
			continue
		}
		found++
		if o.Low > 900 || o.High < 900 {
			wrong++
		}
	}
	t.Logf("%d of %d", wrong, found)
	if found < searches/2 || float64(wrong) > (1-s.Confidence)*float64(found) {
		t.Errorf("%d of %d intervals were wrong, at a confidence of %v", wrong, found, s.Confidence)
	}
}

func TestSearch_FewProbes_Undecided(t *testing.T) {
	s := usual
	s.Probes = 12
	o := s.of(t, 1, knee(900, 0.001, 0, Missed))
	if o.Finding != Undecided || o.Low > 900 || o.High != 0 && o.High < 900 || o.probes != 12 {
		t.Errorf("%+v", o)
	}
	broken := errors.New("broken")
	if _, err := usual.Run(t.Context(), func(context.Context, int64) (Answer, error) { return Met, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestImpossibleSearches(t *testing.T) {
	for _, change := range []func(*Search){
		func(s *Search) { s.From = 0 },
		func(s *Search) { s.To = s.From },
		func(s *Search) { s.To = -1 },
		func(s *Search) { s.Width = 0 },
		func(s *Search) { s.Width = math.NaN() },
		func(s *Search) { s.Confidence = 1 },
		func(s *Search) { s.Confidence = 0.4 },
		func(s *Search) { s.Probes = 0 },
	} {
		s := usual
		change(&s)
		if s.Check() == nil {
			t.Errorf("%+v passes", s)
		}
	}
}
