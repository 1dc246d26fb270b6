package engine

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// service is the time that the broker's only server takes for a message, on average.
const service = time.Millisecond

// model is a queue with Poisson arrivals and one server whose response times are known.
type model struct {
	name     string
	service  func(seed uint64) func(int64) time.Duration
	mean     func(rho float64) float64           // response time, in service times
	below    func(rho, x float64) float64        // P(response time ≤ x)
	messages func(rho float64) (warm, count int) // how many are enough
}

// enough grows as the time after which a queue forgets, 1/(1-√ρ)² service times: Abate and Whitt, "Transient behavior of the M/M/1
// queue", 1987.
func enough(rho float64) (warm, count int) {
	forgets := 1 / math.Pow(1-math.Sqrt(rho), 2)
	return int(10 * forgets), max(50_000, int(300*forgets))
}

var models = []model{
	{
		name: "M/M/1",
		service: func(seed uint64) func(int64) time.Duration {
			rng := rand.New(rand.NewPCG(seed, 1))
			return func(int64) time.Duration { return time.Duration(rng.ExpFloat64() * float64(service)) }
		},
		mean:     func(rho float64) float64 { return 1 / (1 - rho) },
		below:    func(rho, x float64) float64 { return 1 - math.Exp(-(1-rho)*x) },
		messages: enough,
	},
	{
		name:     "M/D/1",
		service:  func(uint64) func(int64) time.Duration { return func(int64) time.Duration { return service } },
		mean:     func(rho float64) float64 { return 1 + rho/(2*(1-rho)) }, // Pollaczek and Khinchine
		below:    func(rho, x float64) float64 { return erlang(rho, x-1) },
		messages: enough,
	},
}

// erlang is P(wait ≤ t) of the M/D/1 queue, in service times: A. K. Erlang, "The theory of probabilities and telephone conversations",
// 1909. The terms of the sum are large and alternate, which takes more digits than a float64 has.
func erlang(rho, t float64) float64 {
	if t < 0 {
		return 0
	}
	r, left := num(rho), num(t)
	sum, shrink := num(0), exp(new(big.Float).Neg(r))
	power := exp(num(0).Mul(r, left)) // e^(ρ(t-k))
	for k := 0; left.Sign() >= 0; k++ {
		x := num(0).Mul(r, left)
		term := num(0).Copy(power)
		for i := 1; i <= k; i++ {
			term.Mul(term, x).Quo(term, num(float64(-i)))
		}
		sum.Add(sum, term)
		power.Mul(power, shrink)
		left.Sub(left, num(1))
	}
	p, _ := sum.Mul(sum, num(0).Sub(num(1), r)).Float64()
	return p
}

func num(x float64) *big.Float { return new(big.Float).SetPrec(1024).SetFloat64(x) }

func exp(x *big.Float) *big.Float {
	sum, term := num(1), num(1)
	for i := 1.0; term.Sign() != 0 && term.MantExp(nil) > -1024; i++ {
		term.Mul(term, x).Quo(term, num(i))
		sum.Add(sum, term)
	}
	return sum
}

// quantile is the x for which below is q.
func (m model) quantile(rho, q float64) float64 {
	low, high := 0.0, 12*m.mean(rho)
	for range 30 {
		if mid := (low + high) / 2; m.below(rho, mid) < q {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// batches is into how many stretches a run is divided. Successive response times depend on each other, but the means of long
// stretches hardly do, so that their spread tells the error of the whole's.
const batches = 30

// estimate is a mean and its standard error.
type estimate struct{ mean, err float64 }

func batchMeans(of []*hist.Histogram, mean func(*hist.Histogram) float64) estimate {
	var n, sum, squares float64
	for _, h := range of {
		n += float64(h.Count())
		sum += mean(h) * float64(h.Count())
	}
	e := estimate{mean: sum / n}
	for _, h := range of {
		d := (mean(h) - e.mean) * float64(h.Count()) / n
		squares += d * d
	}
	e.err = math.Sqrt(squares * float64(len(of)) / float64(len(of)-1))
	return e
}

// shareBelow is how much of h is at most x.
func shareBelow(h *hist.Histogram, x int64) float64 {
	var n uint64
	for v, count := range h.All() {
		if v <= x {
			n += count
		}
	}
	return float64(n) / float64(h.Count())
}

// edge is the greatest value that a histogram does not tell from x.
func edge(x float64) int64 {
	h := &hist.Histogram{}
	h.Record(int64(x))
	h.Record(hist.Highest) // or the greatest value would be shown as it is
	for v := range h.All() {
		return v
	}
	return 0
}

// respond measures the response times of a queue through the engine and the driver in memory, a histogram for each batch.
func (m model) respond(t *testing.T, rho float64, seed uint64) []*hist.Histogram {
	t.Helper()
	b := newBench(t, memory.Config{Service: m.service(seed)})
	defer b.finish()
	warm, count := m.messages(rho)
	rate := schedule.Rate{Events: int64(rho * 1e6), Per: 1e6 * service}
	length := time.Duration(float64(warm+count) / rho * float64(service))
	arrivals := func() schedule.Schedule { return schedule.Poisson(schedule.Constant(rate, length), seed) }
	var wg sync.WaitGroup
	var parts []*hist.Histogram
	wg.Go(func() {
		time.Sleep(time.Duration(float64(warm) / rho * float64(service)))
		before := b.series.Trend(recording.Open, recording.PublishLatency)
		for range batches {
			time.Sleep(time.Duration(float64(count) / rho * float64(service) / batches))
			now := b.series.Trend(recording.Open, recording.PublishLatency)
			parts = append(parts, now.Sub(before))
			before = now
		}
	})
	made, err := Produce{Schedule: arrivals, Payload: payload.Spec{Size: payload.Fixed(64)}}.Run(t.Context(), []*Sender{b.sender(1 << 20)})
	if err != nil || made.Failed != 0 || made.Confirmed != made.Due {
		t.Errorf("%+v, %v", made, err)
	}
	wg.Wait()
	return parts
}

// What the engine measures is what queueing theory says, in the mean and all over the distribution, within the statistical error.
func TestResponseTimesAreThoseOfQueueingTheory(t *testing.T) {
	for _, m := range models {
		for _, rho := range []float64{0.5, 0.8, 0.95} {
			t.Run(fmt.Sprintf("%s at %v", m.name, rho), func(t *testing.T) {
				if testing.Short() && rho > 0.5 {
					t.Skip("part of make test-full")
				}
				synctest.Test(t, func(t *testing.T) { m.compare(t, rho, m.respond(t, rho, 1)) })
			})
		}
	}
}

func (m model) compare(t *testing.T, rho float64, parts []*hist.Histogram) {
	t.Helper()
	const bound = 4 // standard errors: one comparison in some thousands would miss by chance
	mean := batchMeans(parts, func(h *hist.Histogram) float64 { return h.Mean() / float64(service) })
	want := m.mean(rho)
	t.Logf("mean %.3f ± %.3f service times, theory %.3f", mean.mean, mean.err, want)
	if math.Abs(mean.mean-want) > bound*mean.err {
		t.Errorf("mean response time %.3f ± %.3f service times, theory %.3f", mean.mean, mean.err, want)
	}
	if mean.err > 0.1*want {
		t.Errorf("the error of the mean is %.3f: the comparison proves nothing", mean.err)
	}
	all := &hist.Histogram{}
	for _, h := range parts {
		all.Merge(h)
	}
	for i, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		x := edge(m.quantile(rho, q) * float64(service))
		want := m.below(rho, float64(x)/float64(service))
		mixed := 0
		share := batchMeans(parts, func(h *hist.Histogram) float64 {
			s := shareBelow(h, x)
			if s > 0 && s < 1 {
				mixed++
			}
			return s
		})
		t.Logf("p%v %.3f service times, theory %.3f: %.5f ± %.5f are below that", 100*q,
			float64(all.Quantile(q))/float64(service), float64(x)/float64(service), share.mean, share.err)
		if mixed < 2*batches*2/3 { // of two rounds over the batches
			if i < 2 {
				t.Errorf("p%v: most batches are all on one side: the run is too short", 100*q)
			}
			continue // so rare that the spread of the batches does not tell the error
		}
		if math.Abs(share.mean-want) > bound*share.err {
			t.Errorf("%.5f ± %.5f of the responses took at most %v, theory %.5f", share.mean, share.err, time.Duration(x), want)
		}
	}
}

// An independent check of Erlang's sum: P(wait ≤ t) = (1-ρ)e^(ρt) up to one service time, and the mean wait is the integral of the
// rest.
func TestErlang(t *testing.T) {
	for _, rho := range []float64{0.5, 0.8, 0.95} {
		for _, x := range []float64{0, 0.3, 0.999} {
			if got, want := erlang(rho, x), (1-rho)*math.Exp(rho*x); math.Abs(got-want) > 1e-12 {
				t.Errorf("P(wait ≤ %v) at %v is %v, want %v", x, rho, got, want)
			}
		}
		const step = 0.5
		mean := 0.0
		for x := step / 2; x < 4/(1-rho); x += step {
			mean += (1 - erlang(rho, x)) * step
		}
		if want := rho / (2 * (1 - rho)); math.Abs(mean-want) > 0.01*want {
			t.Errorf("the mean wait at %v is %v, want %v", rho, mean, want)
		}
	}
}
