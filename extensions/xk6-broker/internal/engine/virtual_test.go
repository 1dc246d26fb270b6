package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// bench is a run against a broker in memory, under virtual time.
type bench struct {
	t      *testing.T
	run    *Run
	broker *memory.Broker
	conn   driver.Conn
	topic  *Topic
	series *Series
}

// addresses are of drivers that were registered for tests; a name can be registered once.
var addresses atomic.Int64

func newBench(t *testing.T, c memory.Config) *bench {
	t.Helper()
	c.Name = fmt.Sprintf("memory%d", addresses.Add(1))
	b := &bench{t: t, run: NewRun("", 0), broker: memory.New(c)}
	b.run.sleep = machine.Timer
	driver.Register(b.broker.Driver())
	address, err := driver.ParseURL(b.broker.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.conn, err = address.Open(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if admin, ok := b.conn.(driver.Admin); ok {
		if err := admin.CreateTopic(t.Context(), driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 1}); err != nil {
			t.Fatal(err)
		}
	}
	b.topic = b.run.Topic(address, "orders")
	b.series = b.run.Series(Labels{Broker: address.String(), Driver: c.Name, Topic: "orders"})
	return b
}

func (b *bench) sender(window int) *Sender {
	b.t.Helper()
	pub, err := b.run.NewPublisher(b.t.Context(), b.conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: window})
	if err != nil {
		b.t.Fatal(err)
	}
	return pub.NewSender(StampInBody, b.series)
}

func (b *bench) consumer(c driver.ConsumerConfig) *Consumer {
	b.t.Helper()
	c.Topic = "orders"
	if c.Prefetch == 0 {
		c.Prefetch = 1000
	}
	if c.Start == 0 {
		c.Start = driver.StartNew
	}
	consumer, err := b.run.NewConsumer(b.t.Context(), b.conn, b.topic, c, b.series)
	if err != nil {
		b.t.Fatal(err)
	}
	return consumer
}

func (b *bench) finish() {
	b.t.Helper()
	if err := b.run.Finish(context.Background(), Drain{Limit: time.Minute}); err != nil {
		b.t.Error(err)
	}
	if err := b.conn.Close(context.Background()); err != nil {
		b.t.Error(err)
	}
}

func constant(rate int64, d time.Duration) func() schedule.Schedule {
	return func() schedule.Schedule { return schedule.Constant(schedule.Rate{Events: rate, Per: time.Second}, d) }
}

// sameDistribution compares a measured distribution with the exact values that theory gives, in every percentile.
func sameDistribution(t *testing.T, name string, got *hist.Histogram, want []time.Duration) {
	t.Helper()
	exact := &hist.Histogram{}
	for _, d := range want {
		exact.Record(int64(d))
	}
	if got.Count() != exact.Count() {
		t.Fatalf("%s: %d values, want %d", name, got.Count(), exact.Count())
	}
	type pair struct {
		v int64
		n uint64
	}
	collect := func(h *hist.Histogram) (all []pair) {
		for v, n := range h.All() {
			all = append(all, pair{v, n})
		}
		return all
	}
	if g, w := collect(got), collect(exact); !slices.Equal(g, w) {
		t.Fatalf("%s: the distribution differs: p50 %v p99 %v max %v, want p50 %v p99 %v max %v", name,
			time.Duration(got.Quantile(.5)), time.Duration(got.Quantile(.99)), time.Duration(got.Max()),
			time.Duration(exact.Quantile(.5)), time.Duration(exact.Quantile(.99)), time.Duration(exact.Max()))
	}
}

const (
	stallRate  = 1000
	stallRun   = 20 * time.Second
	stallAt    = 5000 // the message that the broker takes so long over
	stallTime  = 2 * time.Second
	stallTick  = time.Second / stallRate
	stallTotal = int(stallRun / stallTick)
)

func stalls(n int64) time.Duration {
	if n == stallAt {
		return stallTime
	}
	return 0
}

// responses are the response times of an open loop: what is due during the stall waits for its end.
func responses() []time.Duration {
	want := make([]time.Duration, stallTotal)
	end := stallAt*stallTick + stallTime
	for n := range want {
		if due := time.Duration(n) * stallTick; n >= stallAt {
			want[n] = max(0, end-due)
		}
	}
	return want
}

// services are the service times of a client that waits for each answer: one message was slow.
func services(total int) []time.Duration {
	want := make([]time.Duration, total)
	want[stallAt] = stallTime
	return want
}

func TestAStallShowsInEveryMessageThatWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: stalls})
		defer b.finish()
		made, err := Produce{Schedule: constant(stallRate, stallRun), Payload: payload.Spec{Size: payload.Fixed(100)}}.
			Run(t.Context(), []*Sender{b.sender(1 << 16)})
		if err != nil {
			t.Fatal(err)
		}
		if made.Confirmed != uint64(stallTotal) || made.Failed != 0 {
			t.Fatalf("confirmed %d and failed %d, want %d and 0", made.Confirmed, made.Failed, stallTotal)
		}
		sameDistribution(t, "publish latency", b.series.Trend(recording.Open, recording.PublishLatency), responses())
		sameDistribution(t, "schedule lag", b.series.Trend(recording.Open, recording.ScheduleLag), make([]time.Duration, stallTotal))
	})
}

// A window of one makes the client wait for each answer, as many clients do. The schedule goes on all the same: latency shows the
// stall in full, under its name, and time shows what such a client would have reported.
func TestAFullWindowCannotHideAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: stalls})
		defer b.finish()
		if _, err := (Produce{Schedule: constant(stallRate, stallRun), Payload: payload.Spec{Size: payload.Fixed(100)}}).
			Run(t.Context(), []*Sender{b.sender(1)}); err != nil {
			t.Fatal(err)
		}
		sameDistribution(t, "publish latency", b.series.Trend(recording.Open, recording.PublishLatency), responses())
		sameDistribution(t, "publish time", b.series.Trend(recording.Open, recording.PublishTime), services(stallTotal))
		sameDistribution(t, "generator lag", b.series.Trend(recording.Open, recording.GeneratorLag), make([]time.Duration, stallTotal))
		if b.series.Count(recording.Blocked) == 0 {
			t.Error("nothing says that sends waited for the window")
		}
	})
}

func TestAClosedLoopIsUncorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := func(n int64) time.Duration { return max(stalls(n), stallTick) }
		b := newBench(t, memory.Config{Service: tick})
		defer b.finish()
		if _, err := (Produce{Count: 10000, Payload: payload.Spec{Size: payload.Fixed(100)}}).Run(t.Context(), []*Sender{b.sender(1)}); err != nil {
			t.Fatal(err)
		}
		want := make([]time.Duration, 10000)
		for n := range want {
			want[n] = tick(int64(n))
		}
		sameDistribution(t, "publish latency", b.series.Trend(recording.Closed, recording.PublishLatency), want)
		sameDistribution(t, "publish time", b.series.Trend(recording.Closed, recording.PublishTime), want)
		if n := b.series.Trend(recording.Open, recording.ScheduleLag).Count(); n != 0 {
			t.Errorf("%d values of schedule lag without a schedule", n)
		}
		if b.series.scheduled() > 0 {
			t.Error("a closed loop is taken for an open one")
		}
	})
}

func TestEndToEndLatencyRunsFromTheDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const transit = 3 * time.Millisecond
		b := newBench(t, memory.Config{Service: stalls, Transit: func(int64) time.Duration { return transit }})
		defer b.finish()
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		loop, err := Consume{Count: uint64(stallTotal), Batch: 50}.Resolve(b.topic.Address.Driver.Features)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := loop.Run(t.Context(), []*Consumer{c}); err != nil {
				t.Error(err)
			}
		})
		if _, err := (Produce{Schedule: constant(stallRate, stallRun), Payload: payload.Spec{Size: payload.Fixed(100)}}).
			Run(t.Context(), []*Sender{b.sender(1 << 16)}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		want := responses()
		for i := range want {
			want[i] += transit
		}
		sameDistribution(t, "end-to-end latency", b.series.Trend(recording.Open, recording.E2ELatency), want)
		tally := c.group.track.Tally()
		if tally.Expected != uint64(stallTotal) || tally.Missing != 0 || tally.Duplicated != 0 || tally.Reordered != 0 {
			t.Errorf("accounting: %+v", tally)
		}
	})
}
