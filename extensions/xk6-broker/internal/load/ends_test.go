package load

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// world is a process that stands still at times, in steps of 0.1 ms: answers come at any time, and are counted when it goes on.
type world struct {
	stands func(at time.Duration) bool
	comes  func(at time.Duration) int // how many answers
}

// lives gives what a latency of 85 ms at best is measured as, how late what came was, how late the witness woke over time, and what is told of the
// messages' ends.
func (w world) lives(length time.Duration) (latency, truth, overTime, told *hist.Histogram) {
	const step = 100 * time.Microsecond
	run := NewRun("", 0)
	e := &ends{run: run, of: map[endKey]*ended{}}
	s := run.Series(Labels{Topic: "orders"})
	latency, truth, overTime = &hist.Histogram{}, &hist.Histogram{}, &hist.Histogram{}
	var waiting []time.Duration
	due := time.Millisecond
	for at := time.Duration(0); at < length; at += step {
		for range w.comes(at) {
			waiting = append(waiting, at)
		}
		if w.stands(at) {
			continue
		}
		if at >= due { // it wakes before what waits is served
			late := int64(at - due)
			e.tick(late)
			for ; late >= 0; late -= int64(time.Millisecond) {
				overTime.Record(late)
			}
			due = at + time.Millisecond
		}
		for _, came := range waiting {
			truth.Record(int64(at - came))
			latency.Record(int64(85*time.Millisecond + at - came))
			s.count(metric.Confirmed, 1, int64(at)+1)
		}
		waiting = waiting[:0]
	}
	e.tick(0)
	return latency, truth, overTime, e.take(true).of(topicKey{"", "orders"})(metric.PublishLatency, "")
}

func TestHiccupsAreWeighedByTheMessagesThatTheyBefell(t *testing.T) {
	const ms = time.Millisecond
	never := func(time.Duration) bool { return false }
	each := func(every, from, length time.Duration) func(time.Duration) bool {
		return func(at time.Duration) bool { return at%every >= from && at%every < from+length }
	}
	batches := func(at time.Duration) int { // 50 a second at once
		if at%time.Second == 85*ms {
			return 50
		}
		return 0
	}
	random := rand.New(rand.NewPCG(1, 2)) //gosec:disable G404 -- a simulation
	steady := func(time.Duration) int { return int(random.ExpFloat64() * 1.5) }
	spike := func(at time.Duration) int { // ten seconds of much, and then little
		if at < 10*time.Second || random.IntN(100) == 0 {
			return random.IntN(3)
		}
		return 0
	}
	often := func(at time.Duration) int { // every tenth of a second
		return batches(at%(100*ms) + 85*ms)
	}
	one := func(at time.Duration) int { return min(1, batches(at)) }
	for name, c := range map[string]struct {
		world
		q        float64
		apart    time.Duration // what is told may be as far from the truth
		believed bool          // is a latency of 85 ms at best to be, there
		before   bool          // was it by the hiccups over time alone
	}{
		"it never stands still":                     {world{never, steady}, 0.99, ms, true, true},
		"a steady load":                             {world{each(700*ms, 100*ms, 50*ms), steady}, 0.95, 5 * ms, false, false},
		"a steady load, below that":                 {world{each(700*ms, 100*ms, 50*ms), steady}, 0.9, ms, true, true},
		"a steady load, and many short ones":        {world{each(40*ms, 5*ms, 4*ms), steady}, 0.95, ms, true, true},
		"batches, and it stands still at any time":  {world{each(730*ms, 0, 60*ms), often}, 0.95, 8 * ms, false, false},
		"the same, below that":                      {world{each(730*ms, 0, 60*ms), often}, 0.9, ms, true, true},
		"it stands still when the answers come":     {world{each(time.Second, 66*ms, 42*ms), batches}, 0.5, 42 * ms / 2, false, true},
		"the same, and a little all the time":       {world{func(at time.Duration) bool { return each(time.Second, 66*ms, 42*ms)(at) || each(4*ms, 0, 2*ms)(at) }, batches}, 0.5, 42 * ms / 2, false, true},
		"it stands still when no answers come":      {world{each(time.Second, 300*ms, 300*ms), batches}, 0.9, ms, true, true},
		"it stands still while there is much":       {world{func(at time.Duration) bool { return at < 10*time.Second && each(time.Second, 0, 200*ms)(at) }, spike}, 0.9, 10 * ms, false, true},
		"it stands still, and there is little":      {world{func(at time.Duration) bool { return at > 10*time.Second && each(time.Second, 0, 200*ms)(at) }, spike}, 0.95, ms, false, false}, // over time it does
		"one message a second, and it stands still": {world{each(time.Second, 66*ms, 42*ms), one}, 0.5, 42 * ms / 2, false, true},
	} {
		latency, truth, overTime, told := c.lives(40 * time.Second)
		if told == nil || told.Count() != truth.Count() {
			t.Errorf("%s: not all of %d are told of", name, truth.Count())
			continue
		}
		got, want := time.Duration(told.Quantile(c.q)), time.Duration(truth.Quantile(c.q))
		if (got-want).Abs() > c.apart || want > ms && got < want/3 {
			t.Errorf("%s: the p%v is late by %v, and told is %v", name, 100*c.q, want, got)
		}
		for befell, want := range map[*hist.Histogram]bool{told: c.believed, nil: c.before} {
			if believed := believedAt(t, c.q, latency, overTime, befell); believed != want {
				t.Errorf("%s: the p%v is believed: %v, with those that befell messages: %v", name, 100*c.q, believed, befell != nil)
			}
		}
	}
}

// believedAt tells whether a percentile is believed of a latency of which these are the hiccups over time, and those that befell its messages.
func believedAt(t *testing.T, q float64, latency, overTime, befell *hist.Histogram) bool {
	publish := metric.PublishTime.String()
	of := result.Topic{Topic: "orders", OpenLoop: true, Trends: map[string]*hist.Histogram{publish: latency, metric.PublishLatency.String(): latency}}
	of.Befall(overTime, func(metric.Trend, string) *hist.Histogram { return befell })
	r := result.Result{Platform: &result.Platform{Hiccups: overTime}, Topics: []result.Topic{of}}
	r.Describe()
	for _, p := range r.Topics[0].Percentiles[publish] {
		if p.Q == q {
			return p.Believed
		}
	}
	t.Errorf("there is no p%v", 100*q)
	return false
}

// What is told of the ends of messages is what the latencies of a result are held against, in the whole and in its phases.
func TestAResultHasTheHiccupsOfItsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return 0 }})
		c := b.run.NewCollector()
		defer c.Close()
		s := b.sender(1)
		for _, phase := range []struct {
			name     string
			messages uint64
			late     time.Duration
		}{{"first", 100, 50 * time.Millisecond}, {"second", 300, 0}} {
			if _, err := c.Begin(phase.name); err != nil {
				t.Fatal(err)
			}
			b.produce(s, phase.messages)
			c.ends.tick(int64(phase.late)) // the window goes on
		}
		b.finish()
		c.Collect()
		for range catchesUp {
			c.ends.tick(0)
		}
		c.Collect()
		topic := resultOf(t, c).Topics[0]
		name := metric.PublishLatency.String()
		first, second, whole := topic.Phases["first"].Hiccups[name], topic.Phases["second"].Hiccups[name], topic.Hiccups[name]
		if first.Count() != 100 || first.Max() < int64(40*time.Millisecond) || second.Count() != 300 || second.Max() != 0 || whole.Count() != 400 || whole.Max() != first.Max() {
			t.Errorf("%d to %v, %d to %v, and %d in all", first.Count(), time.Duration(first.Max()), second.Count(), time.Duration(second.Max()), whole.Count())
		}
	})
}

// What ends in one way is not held up with what ends in another, nor one group with another.
func TestEachEndHasTheHiccupsOfItsOwn(t *testing.T) {
	e := &ends{run: NewRun("", 0), of: map[endKey]*ended{}}
	orders := e.run.Series(Labels{Topic: "orders"})
	ends := []struct {
		trend metric.Trend
		group string
		end   func()
		topic topicKey
	}{
		{metric.PublishLatency, "", func() { orders.count(metric.Confirmed, 3, 1) }, topicKey{name: "orders"}},
		{metric.RequestLatency, "", func() { orders.answered.Add(3) }, topicKey{name: "orders"}},
		{metric.E2ELatency, "workers", func() { e.run.Series(Labels{Topic: "orders", Group: "workers"}).count(metric.Received, 3, 1) }, topicKey{name: "orders"}},
		{metric.E2ELatency, "others", func() { e.run.Series(Labels{Topic: "orders", Group: "others"}).count(metric.Received, 3, 1) }, topicKey{name: "orders"}},
		{metric.PublishLatency, "", func() { e.run.Series(Labels{Topic: "payments"}).count(metric.Confirmed, 3, 1) }, topicKey{name: "payments"}},
	}
	for i, one := range ends {
		one.end()
		e.tick(int64(time.Duration(i+1) * 20 * time.Millisecond))
		e.take(true)
		one.end()
		e.tick(int64(time.Duration(i+1) * 20 * time.Millisecond))
		taken := e.take(true)
		if h := taken.of(one.topic)(one.trend, one.group); len(taken) != 1 || h == nil || h.Count() != 3 || h.Max() > int64(time.Duration(i+1)*20*time.Millisecond) {
			t.Errorf("%v of %s, group %q: %v in %d", one.trend, one.topic.name, one.group, h, len(taken))
		}
	}
}

// BenchmarkTick tells what the witness has to do each millisecond.
func BenchmarkTick(b *testing.B) {
	for _, topics := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(topics), func(b *testing.B) {
			e := &ends{run: NewRun("", 0), of: map[endKey]*ended{}}
			for i := range topics {
				e.run.Series(Labels{Topic: fmt.Sprint("topic", i)})
				e.run.Series(Labels{Topic: fmt.Sprint("topic", i), Group: "workers"})
			}
			all := e.run.All()
			b.ReportAllocs()
			for b.Loop() {
				all[0].counters[metric.Confirmed].Add(100)
				e.tick(20_000)
			}
		})
	}
}
