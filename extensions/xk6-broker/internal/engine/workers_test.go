package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

const (
	workers  = 8
	blocking = 10 * time.Millisecond // of each Send
)

// blockingBench is a run against a driver whose Send waits for the broker, which answers each after 10 ms.
func blockingBench(t *testing.T) (*bench, *Sender) {
	t.Helper()
	f := memory.Full()
	f.Async, f.Order = false, driver.Unordered
	b := newBench(t, memory.Config{Features: f, Servers: workers, Service: func(int64) time.Duration { return blocking }})
	pub, err := b.run.NewPublisher(t.Context(), b.conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1 << 16, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return b, pub.NewSender(StampInBody, b.series)
}

// theory is how long after they were due messages are sent that come evenly, each to the worker that is free first.
func theory(rate int, total int) (waits, responses []time.Duration) {
	var free [workers]time.Duration
	for n := range total {
		due := time.Duration(n) * time.Second / time.Duration(rate)
		start := max(due, free[n%workers])
		free[n%workers] = start + blocking
		waits = append(waits, start-due)
		responses = append(responses, free[n%workers]-due)
	}
	return waits, responses
}

func (b *bench) valid(t *testing.T) {
	t.Helper()
	r := b.run.NewCollector().Result()
	verdict.Judge(r, verdict.Circumstances{})
	if !r.Verdict.Valid {
		t.Errorf("not valid: %q", reasontest.Codes(r.Verdict.Reasons))
	}
}

// Eight workers can send 800 messages a second of 10 ms each. At 500 a second nobody waits; at 1,000 a second the wait grows without end. None
// of either is the generator's.
func TestADriverThatWaitsForTheBroker(t *testing.T) {
	const seconds = 2
	for _, rate := range []int{500, 799, 1000} {
		synctest.Test(t, func(t *testing.T) {
			b, s := blockingBench(t)
			defer b.finish()
			made, err := Produce{Schedule: constant(int64(rate), seconds*time.Second), Payload: payload.Spec{Size: payload.Fixed(100)}, Batch: 1}.Run(t.Context(), []*Sender{s})
			if err != nil || made.Confirmed != uint64(rate*seconds) {
				t.Fatalf("%+v, %v", made, err)
			}
			waits, responses := theory(rate, rate*seconds)
			sameDistribution(t, "schedule lag", b.series.Trend(recording.Open, recording.ScheduleLag), waits)
			sameDistribution(t, "publish latency", b.series.Trend(recording.Open, recording.PublishLatency), responses)
			services := make([]time.Duration, rate*seconds)
			for i := range services {
				services[i] = blocking
			}
			sameDistribution(t, "publish time", b.series.Trend(recording.Open, recording.PublishTime), services)
			sameDistribution(t, "generator lag", b.series.Trend(recording.Open, recording.GeneratorLag), make([]time.Duration, rate*seconds))
			if waited := b.series.Count(recording.Blocked) > 0; waited != (rate > 800) {
				t.Errorf("%d/s: somebody waited for a worker: %v", rate, waited)
			}
			b.valid(t)
		})
	}
}

// Ten scripts send at once through eight workers: two wait until the first are back, and each gets its own receipt.
func TestScriptsThatShareWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := blockingBench(t)
		defer b.finish()
		due := driver.Now()
		var sent sync.WaitGroup
		for range 10 {
			sent.Go(func() {
				over := make(chan []Receipt, 1)
				s.Send(t.Context(), driver.Batch{{Body: make([]byte, 100)}}, Timing{Due: due}, func(r []Receipt) { over <- r })
				if r := <-over; len(r) != 1 || r[0].Err != nil {
					t.Errorf("%+v", r)
				}
			})
		}
		sent.Wait()
		want := make([]time.Duration, 10)
		for i := range want {
			want[i] = time.Duration(1+i/workers) * blocking
		}
		sameDistribution(t, "publish latency", b.series.Trend(recording.Open, recording.PublishLatency), want)
		sameDistribution(t, "generator lag", b.series.Trend(recording.Open, recording.GeneratorLag), make([]time.Duration, 10))
		b.valid(t)
	})
}

// What failed in a loop of one scenario is absent from that, and from no other.
func TestFailuresOfASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		defer b.finish()
		s := b.sender(1)
		rare := b.run.Series(Labels{Broker: b.series.Broker, Driver: b.series.Driver, Topic: "orders", Tags: "rare"})
		send := func(n int, due int64) {
			done := make(chan struct{})
			s.Send(t.Context(), make(driver.Batch, n), Timing{Due: due}, func([]Receipt) { close(done) })
			<-done
		}
		send(1, driver.Now())
		s.SetSeries(rare)
		send(2, 0) // more than the window takes
		send(1, 0)
		for at, want := range map[*Series]uint64{b.series: 0, rare: 2} {
			for trend, n := range map[recording.Trend]uint64{
				recording.PublishLatency: want, recording.PublishTime: want, recording.RequestLatency: 0, recording.ScheduleLag: 0,
			} {
				if got := at.measured(everyPhase).Failed(trend); got != n {
					t.Errorf("%v, %s: %d, want %d", at.Tags, trend, got, n)
				}
			}
		}
	})
}
