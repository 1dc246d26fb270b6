package engine

import (
	"math"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// In real time, with real sleeps, response times are within 10 % of theory too. The stretch of the Poisson process is one whose own
// mean is within 2 % of the theoretical mean, which the test checks by Lindley's recursion, so that the rest is for the clock.
func TestResponseTimesInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	const (
		work   = 20 * time.Millisecond
		length = 12 * time.Second
		theory = 1.5 * float64(work) // M/D/1 at utilisation 0.5
		seed   = 2
	)
	arrivals := schedule.Poisson(schedule.Constant(schedule.Rate{Events: 25, Per: time.Second}, length), seed)
	var sum, count float64
	var free time.Duration
	for n := uint64(0); ; n++ {
		due, ok := arrivals.At(n)
		if !ok {
			break
		}
		free = max(free, due) + work
		sum += float64(free - due)
		count++
	}
	if path := sum / count; math.Abs(path-theory) > 0.02*theory {
		t.Fatalf("this stretch has a mean of %v, not %v", time.Duration(path), time.Duration(theory))
	}
	for attempt := 1; ; attempt++ {
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return work }})
		b.run.sleep = machine.Until
		if _, err := (Produce{Schedule: func() schedule.Schedule { return schedule.Share{}.Of(arrivals) }, Payload: payload.Spec{Size: payload.Fixed(64)}}).
			Run(t.Context(), []*Sender{b.sender(1 << 16)}); err != nil {
			t.Fatal(err)
		}
		b.finish()
		latency, lag := b.series.Trend(recording.Open, recording.PublishLatency), b.series.Trend(recording.Open, recording.ScheduleLag)
		off := latency.Mean()/theory - 1
		t.Logf("mean %v, theory %v; the generator was up to %v late", time.Duration(latency.Mean()), time.Duration(theory), time.Duration(lag.Max()))
		if float64(latency.Count()) != count {
			t.Fatalf("%d of %v messages", latency.Count(), count)
		}
		if math.Abs(off) <= 0.1 {
			return
		}
		if slow := time.Duration(lag.Quantile(0.99)); slow < work/10 {
			t.Fatalf("mean %v, which is %+.1f %% from theory's %v", time.Duration(latency.Mean()), 100*off, time.Duration(theory))
		}
		if attempt == 3 {
			t.Fatalf("the generator woke up to %v late in each of %d attempts: this test needs an idle machine", time.Duration(lag.Max()), attempt)
		}
	}
}
