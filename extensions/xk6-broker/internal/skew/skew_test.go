package skew_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/skew"
)

// world is two clocks, and messages between them, by a time that is nobody's.
type world struct {
	*rand.Rand
	offset, drift   float64       // of the other clock from this one, at time 0 in ns, and in ns for each ns
	there, back     time.Duration // the least times that messages take
	spread          time.Duration // and how much longer, on average
	limits          skew.Limits
	wanders         float64 // how much the drift changes in the middle
	length, between time.Duration
}

func (w *world) other(at int64) int64 {
	bent := max(0, float64(at)-float64(w.length)/2)
	return at + int64(math.Round(w.offset+w.drift*float64(at)+w.wanders*bent))
}

func (w *world) delay(least time.Duration) int64 {
	return int64(least) + int64(w.ExpFloat64()*float64(w.spread))
}

// run has both send all the time; some messages are lost.
func (w *world) run() {
	for at := int64(0); at < int64(w.length); at += int64(w.between) {
		there, back := at+w.delay(w.there), w.delay(w.back)
		if w.IntN(10) > 0 {
			w.limits.AtMost(at, w.other(there))
		}
		if w.IntN(10) > 0 {
			w.limits.AtLeast(w.other(there), there+back)
			w.limits.Trip(there + back - at)
		}
	}
}

func (w *world) truth(at int64) int64 { return w.other(at) - at }

func random(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 13))
	return &world{
		Rand: r, offset: float64(r.Int64N(2e12)) - 1e12, drift: (r.Float64() - 0.5) * 200e-6,
		there: time.Duration(r.Int64N(5e6)), back: time.Duration(r.Int64N(5e6)), spread: time.Duration(1 + r.Int64N(20e6)),
		length: time.Duration(1e9 + r.Int64N(600e9)), between: 200 * time.Millisecond,
	}
}

// seeds is how many of all seeds are tried: a tenth of them with -test.short.
func seeds(all uint64) uint64 {
	if testing.Short() {
		return all / 10
	}
	return all
}

// However unlike the ways there and back are, the truth is within the bound, at every time.
func TestTheOffsetIsWithinItsBound(t *testing.T) {
	t.Parallel()
	for seed := range seeds(1000) {
		w := random(seed)
		w.run()
		o, ok := w.limits.Between(0, int64(w.length))
		if !ok {
			t.Fatalf("seed %d: nothing is known", seed)
		}
		if wrong := math.Abs(o.Drift - w.drift*1e6); wrong > o.Gives+0.001 {
			t.Errorf("seed %d: %+v, and it drifts by %v", seed, o, w.drift*1e6)
		}
		if off := w.truth(o.At) - o.By; off > o.Bound || off < -o.Bound {
			t.Errorf("seed %d: %+v, and it is %d", seed, o, w.truth(o.At))
		}
		for _, at := range []int64{0, o.At, int64(w.length)} {
			if truth := w.truth(at); truth < o.Least || truth > o.Most {
				t.Errorf("seed %d: at %d %+v, and it is %d", seed, at, o, truth)
			}
		}
		if trip := int64(w.there + w.back); o.Bound > trip/2+int64(w.spread)*4 {
			t.Errorf("seed %d: a bound of %v, of messages that take %v and %v at least and %v more", seed, time.Duration(o.Bound), w.there, w.back, w.spread)
		}
	}
}

// The bound is half of the least round trip, not of the mean one, and the drift is seen.
func TestTheBoundIsThatOfTheQuickestMessages(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		w := random(seed)
		w.offset, w.drift, w.length = 1e9, 50e-6, 5*time.Minute
		w.there, w.back, w.spread = 100*time.Microsecond, 100*time.Microsecond, 300*time.Microsecond
		w.run()
		o, _ := w.limits.Between(0, int64(w.length))
		if o.Bound > int64(130*time.Microsecond) || o.Trip < int64(200*time.Microsecond) || o.Trip > int64(250*time.Microsecond) {
			t.Errorf("seed %d: %+v", seed, o)
		}
		if math.Abs(o.Drift-50) > 2 {
			t.Errorf("seed %d: a drift of %v ppm", seed, o.Drift)
		}
	}
}

// A clock whose rate changes fits no line: the limits are as far apart as that takes, but for what the rate changes by in an eighth of the time.
func TestARateThatChanges(t *testing.T) {
	t.Parallel()
	for seed := range seeds(200) {
		w := random(seed)
		w.there, w.back, w.spread = 50*time.Microsecond, 50*time.Microsecond, 100*time.Microsecond
		w.wanders = 20e-6
		w.run()
		o, _ := w.limits.Between(0, int64(w.length))
		if w.length > 100*time.Second && o.Gives != skew.MostDrift*1e6 { // a line that fits is not looked for in vain
			t.Errorf("seed %d: %+v, of a rate that changed in %v", seed, o, w.length)
		}
		for i := range int64(21) {
			at := i * int64(w.length) / 20
			if truth := w.truth(at); truth < o.Least-int64(time.Millisecond) || truth > o.Most+int64(time.Millisecond) {
				t.Errorf("seed %d: at %d %+v, and it is %d", seed, at, o, truth)
			}
		}
	}
}

func TestNothingIsKnownOfOneWay(t *testing.T) {
	t.Parallel()
	var l skew.Limits
	if _, ok := l.Between(0, 1); ok {
		t.Error("of no message")
	}
	l.AtLeast(5, 10)
	if o, ok := l.Between(0, 20); ok {
		t.Errorf("of one way: %+v", o)
	}
	l.AtMost(11, 14)
	if o, ok := l.Between(10, 11); !ok || o.Least > -5 || o.Most < 3 || o.Least < -6 || o.Most > 4 || o.Messages != 1 {
		t.Errorf("%+v", o)
	}
}
