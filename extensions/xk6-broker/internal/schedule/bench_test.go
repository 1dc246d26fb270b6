package schedule_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// long is a ramp up, a plateau and a ramp down over three hours: 288 million arrivals.
func long() schedule.Intensity {
	top := schedule.Rate{Events: 40_000, Per: time.Second}
	return schedule.Ramp(schedule.Rate{}, schedule.Stage{Target: top, Duration: time.Hour}, schedule.Stage{Target: top, Duration: time.Hour},
		schedule.Stage{Duration: time.Hour})
}

// benchmark asks for one arrival after another, from the first again after the last.
func benchmark(b *testing.B, s schedule.Schedule) {
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		if _, ok := s.At(n); !ok {
			n = 0
		} else {
			n++
		}
	}
}

func BenchmarkConstant(b *testing.B) {
	benchmark(b, schedule.Constant(schedule.Rate{Events: 200_000, Per: time.Second}, time.Hour))
}

func BenchmarkRamp(b *testing.B) { benchmark(b, long()) }

func BenchmarkPoisson(b *testing.B) {
	benchmark(b, schedule.Poisson(schedule.Constant(schedule.Rate{Events: 200_000, Per: time.Second}, time.Hour), 1))
}

func BenchmarkPoissonRamp(b *testing.B) { benchmark(b, schedule.Poisson(long(), 1)) }

func BenchmarkTrace(b *testing.B) {
	var text strings.Builder
	for i := range 100_000 {
		text.WriteString(strconv.Itoa(i) + "us\n")
	}
	s, err := schedule.Trace(strings.NewReader(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, s)
}

func BenchmarkShardOfPoisson(b *testing.B) {
	benchmark(b, schedule.Shard(1, 4).Of(schedule.Poisson(schedule.Constant(schedule.Rate{Events: 200_000, Per: time.Second}, time.Hour), 1)))
}

func BenchmarkTraceRead(b *testing.B) {
	var text strings.Builder
	for i := range 100_000 {
		text.WriteString(strconv.Itoa(i/1000) + "." + strconv.Itoa(1000 + i%1000)[1:] + "\n")
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schedule.Trace(strings.NewReader(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}
