package recording_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// wide returns n distributions of 10,000 values, as in a second of the worst broker.
func wide(r *rand.Rand, n int) []hist.Packed { return spread(r, n, 10_000, 1) }

// widest returns n distributions as wide ones become by joining.
func widest(r *rand.Rand, n int) []hist.Packed { return spread(r, n, 100_000, 200) }

// spread returns n distributions of values from 1 µs to 10 s, each value up to so many times.
func spread(r *rand.Rand, n, values, times int) (all []hist.Packed) {
	for range n {
		h := &hist.Histogram{}
		for range values {
			h.RecordN(int64(1e3*math.Pow(10, 7*r.Float64())), uint64(1+r.IntN(times))) //gosec:disable G115 -- positive
		}
		all = append(all, h.Pack())
	}
	return all
}

// narrow returns distributions as a second of a healthy broker gives them.
func narrow(r *rand.Rand, n int) (all []hist.Packed) {
	for range n {
		h := &hist.Histogram{}
		for range 1_000 {
			h.Record(int64(2e6 * math.Exp(r.NormFloat64()/2)))
		}
		all = append(all, h.Pack())
	}
	return all
}

// second returns interval n of one second: of each topic a record with 8 latencies.
func second(n, topics int, from []hist.Packed) *recording.Interval {
	at := int64(n) * int64(time.Second)
	i := &recording.Interval{From: at, To: at + int64(time.Second)}
	for topic := range topics {
		r := recording.Record{Key: recording.Key{Broker: "b", Driver: "d", Topic: fmt.Sprint("topic", topic)}}
		r.Counts[recording.Sent] = 10_000
		for t := range 8 {
			r.Latencies[recording.Open][t] = from[(n+t)%len(from)]
		}
		i.Records = append(i.Records, r)
	}
	return i
}

var shapes = []struct {
	name  string
	packs func(*rand.Rand, int) []hist.Packed
}{{"narrow", narrow}, {"wide", wide}}

// BenchmarkAdd reports the longest Add too. Each joins few pairs, even after an idle hour.
func BenchmarkAdd(b *testing.B) {
	for _, shape := range shapes {
		for _, idle := range []int{0, 3600} {
			b.Run(fmt.Sprintf("%s/idle=%d", shape.name, idle), func(b *testing.B) {
				from := shape.packs(rand.New(rand.NewPCG(1, 2)), 13)
				var r recording.Recording
				for n := range idle {
					r.Add(second(n, 1, []hist.Packed{{}}))
				}
				var worst time.Duration
				n := idle
				for b.Loop() {
					i := second(n, 1, from)
					start := time.Now()
					r.Add(i)
					worst = max(worst, time.Since(start))
					n++
				}
				b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
				b.ReportMetric(float64(len(from[0].HDR)), "packed-B")
				b.ReportMetric(float64(len(r.Intervals())), "intervals")
			})
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, shape := range shapes {
		b.Run(shape.name, func(b *testing.B) {
			from := shape.packs(rand.New(rand.NewPCG(1, 2)), 13)
			f, err := recording.Create(filepath.Join(b.TempDir(), "recording.bin"))
			if err != nil {
				b.Fatal(err)
			}
			r := &recording.Recording{}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Append(r, second(n, 1, from)); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

func BenchmarkSum(b *testing.B) {
	for _, shape := range shapes {
		b.Run(shape.name, func(b *testing.B) {
			from := shape.packs(rand.New(rand.NewPCG(1, 2)), 13)
			var intervals []*recording.Interval
			for n := range 1200 {
				intervals = append(intervals, second(n, 1, from))
			}
			for b.Loop() {
				recording.Sum(intervals, nil)
			}
		})
	}
}
