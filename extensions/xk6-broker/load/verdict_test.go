package load

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// judgement is what a verdict must say of a topic.
type judgement struct {
	topic  TopicResult
	c      Circumstances
	reason string // "" for a valid run
	note   string
	stands about // what the reason does not speak against
}

func counted(counts map[Counter]int64) map[string]int64 {
	named := map[string]int64{}
	for c, n := range counts {
		named[c.String()] = n
	}
	return named
}

func only(a Accounting) []GroupResult { return []GroupResult{{Accounting: a}} }

func accounted(expected, received uint64) Accounting {
	a := Accounting{}
	a.Expected, a.Received = expected, received
	a.Missing = expected - received
	return a
}

func TestWhatSpeaksAgainstARun(t *testing.T) {
	sound := counted(map[Counter]int64{Due: 1000, Sent: 1000, Confirmed: 1000, Received: 1000})
	with := func(c Counter, n int64) map[string]int64 {
		more := map[string]int64{c.String(): n}
		for name, n := range sound {
			if name != c.String() {
				more[name] = n
			}
		}
		return more
	}
	send := func(n int64) []ErrorCount { return []ErrorCount{{"send", driver.Timeout, n}} }
	drained := accounted(1000, 990)
	drained.Drained, drained.Missing = 10, 0
	few := accounted(10_000, 9_999)
	few.Drained, few.Missing = 1, 0
	oneRemoved := accounted(10_000, 9_999)
	oneRemoved.Removed, oneRemoved.Missing = 1, 0
	undelivered, uncertain, lost := accounted(1000, 900), accounted(1000, 900), accounted(1000, 900)
	undelivered.Undelivered, uncertain.Uncertain, lost.Lost = 100, 100, 100
	for name, j := range map[string]judgement{
		"sound":             {topic: TopicResult{Counts: sound, Groups: only(accounted(1000, 1000))}, stands: latencies | account},
		"nothing":           {topic: TopicResult{}, reason: "nothing was measured"},
		"errors only":       {topic: TopicResult{Errors: []ErrorCount{{"connect", driver.Denied, 1}}}, reason: "nothing was sent and nothing received"},
		"nothing confirmed": {topic: TopicResult{Counts: counted(map[Counter]int64{Sent: 9}), Errors: send(9)}, reason: "none of 9 messages was confirmed"},
		"failing sends":     {topic: TopicResult{Counts: sound, Errors: send(2)}, reason: "2 of 1000 sends failed (0.20 %)", stands: account},
		"a failing send":    {topic: TopicResult{Counts: sound, Errors: send(1)}, note: "1 of 1000 sends failed", stands: latencies | account},
		"never sent":        {topic: TopicResult{Counts: with(Due, 1001)}, reason: "1 message was due but never sent", stands: account},
		"nobody received": {
			topic: TopicResult{Counts: with(Received, 0), Declared: true}, reason: "a consumer that received nothing", stands: latencies,
		},
		"drained":     {topic: TopicResult{Counts: sound, Groups: only(drained)}, reason: "10 messages (1.0 %) reached no consumer", stands: account},
		"one drained": {topic: TopicResult{Counts: sound, Groups: only(few)}, note: "1 message was read at the end", stands: latencies | account},
		"one removed": {topic: TopicResult{Counts: sound, Groups: only(oneRemoved)}, note: "1 message was removed from the broker", stands: latencies | account},
		"undelivered": {topic: TopicResult{Counts: sound, Groups: only(undelivered)}, reason: "100 messages (10 %) were still at the broker", stands: account},
		"uncertain":   {topic: TopicResult{Counts: sound, Groups: only(uncertain)}, reason: "it cannot be told whether", stands: latencies},
		"lost":        {topic: TopicResult{Counts: sound, Groups: only(lost)}, stands: latencies | account},
		"aliased":     {topic: TopicResult{Counts: with(Aliased, 7)}, reason: "name it by one URL", stands: latencies},
		"earlier":     {topic: TopicResult{Counts: with(Earlier, 7)}, reason: "an earlier test with the same BROKER_RUN"},
		"negative":    {topic: TopicResult{Counts: with(Negative, 7)}, reason: "arrived before they were sent", stands: account},
		"unstamped":   {topic: TopicResult{Counts: with(Unaccounted, 7)}, note: "sent without a stamp", stands: latencies | account},
		"foreign":     {topic: TopicResult{Counts: with(Foreign, 7)}, note: "belong to other tests", stands: latencies | account},
		"routed":      {topic: TopicResult{Counts: with(Routed, 7)}, note: "how many did not come is not known", stands: latencies | account},
		"routed here": {topic: TopicResult{Counts: with(Routed, 7), alone: true}, note: "in no account of what was lost", stands: latencies | account},
		"ended early": {topic: TopicResult{Counts: sound}, c: Circumstances{Ended: "it was interrupted"}, reason: "it was interrupted"},
		"dropped":     {topic: TopicResult{Counts: sound}, c: Circumstances{Dropped: 3}, reason: "k6 dropped 3 arrivals", stands: account},
		"unserved":    {topic: TopicResult{Counts: sound}, c: Circumstances{Unserved: 3}, reason: "3 arrivals were due", stands: account},
		"both loops": {
			topic: TopicResult{Counts: sound, OpenLoop: true, ClosedLoop: true}, note: "by the tag loop", stands: latencies | account,
		},
	} {
		t.Run(name, func(t *testing.T) {
			j.topic.Topic = "orders"
			j.topic.Trends = map[string]*hist.Histogram{}
			r := &Result{Topics: []TopicResult{j.topic}}
			r.Topics[0].Describe()
			r.Judge(j.c)
			v := r.Verdict
			has := func(all []string, text string) bool {
				return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, text) })
			}
			if v.Valid != (j.reason == "") || j.reason != "" && !has(v.Reasons, j.reason) || j.note != "" && !has(v.Notes, j.note) {
				t.Errorf("%+v", v)
			}
			if v.Latencies != (j.stands&latencies != 0) || v.Account != (j.stands&account != 0) {
				t.Errorf("latencies %v, account %v", v.Latencies, v.Account)
			}
		})
	}
}

// A process that saturates its CPUs under load measures itself, however idle it is before and after.
func TestCPUIsJudgedByItsWorstSeconds(t *testing.T) {
	history := func(loaded int, share float64, width int) []Point {
		line := newTimeline(1)
		line.width = width
		for s := range int64(60) {
			i := &interval{from: s * int64(time.Second), to: (s + 1) * int64(time.Second), cpu: 0.02}
			if s >= 20 && s < 20+int64(loaded) {
				i.cpu, i.counts[Due] = share, 1000
			}
			line.add(i, nil)
		}
		return history(line.all(), 0)
	}
	for _, c := range []struct {
		loaded int
		share  float64
		valid  bool
	}{{10, 0.95, false}, {10, 0.85, true}, {2, 0.99, true}, {40, 0.91, false}} {
		for _, width := range []int{1, 16} { // also where the history has lost its seconds
			r := &Result{Topics: []TopicResult{{
				Counts: counted(map[Counter]int64{Due: 1000, Sent: 1000, Confirmed: 1000}), History: history(c.loaded, c.share, width),
			}}}
			if r.Judge(Circumstances{CPU: 0.1}); r.Verdict.Valid != c.valid {
				t.Errorf("%d seconds at %v: %+v", c.loaded, c.share, r.Verdict)
			}
		}
	}
}

// spread makes a distribution of n equal values and some that are larger.
func spread(n uint64, value int64, tail ...int64) *hist.Histogram {
	h := &hist.Histogram{}
	h.RecordN(value, n)
	for _, v := range tail {
		h.RecordN(v, 20)
	}
	return h
}

// What speaks against several latencies of one topic is said once.
func TestLatenciesOfOneTopicShareASentence(t *testing.T) {
	late := func(share, value, late string) string {
		return share + " % of its p99 (" + value + ") is lateness of the machine (" + late + "); lower the rate"
	}
	const absent = "1 % of the messages, which count as the slowest, are not in it"
	for name, c := range map[string]struct {
		beliefs []Belief
		want    []string
	}{
		"the same lateness": {
			[]Belief{{"a", "publish latency", 0.95, late("20", "29ms", "6ms")}, {"a", "end-to-end latency", 0.95, late("18", "32ms", "6ms")}},
			[]string{"a: publish latency and end-to-end latency can be believed up to p95: 20 % of its p99 (29ms) and 18 % of its p99 (32ms) are lateness of " +
				"the machine (6ms); lower the rate"},
		},
		"three of them": {
			[]Belief{{"a", "x", 0, late("1", "1ms", "6ms")}, {"a", "y", 0, late("2", "2ms", "6ms")}, {"a", "z", 0, late("3", "3ms", "6ms")}},
			[]string{"a: not even the median of the x and y and z can be believed: 1 % of its p99 (1ms) and 2 % of its p99 (2ms) and 3 % of its p99 (3ms) are " +
				"lateness of the machine (6ms); lower the rate"},
		},
		"the same share":   {[]Belief{{"a", "x", 0.95, absent}, {"a", "y", 0.95, absent}}, []string{"a: x and y can be believed up to p95: " + absent}},
		"nothing":          {[]Belief{{"a", "x", 0.95, ""}, {"a", "y", 0.95, ""}}, nil},
		"other topics":     {[]Belief{{"a", "x", 0.95, absent}, {"b", "x", 0.95, absent}}, []string{"a: x can", "b: x can"}},
		"another end":      {[]Belief{{"a", "x", 0.95, absent}, {"a", "y", 0.9, absent}}, []string{"up to p95", "up to p90"}},
		"another lateness": {[]Belief{{"a", "x", 0.95, late("2", "2ms", "6ms")}, {"a", "y", 0.95, late("2", "2ms", "7ms")}}, []string{"(6ms)", "(7ms)"}},
		"another reason":   {[]Belief{{"a", "x", 0.95, late("2", "2ms", "6ms")}, {"a", "y", 0.95, absent}}, []string{"(6ms)", absent}},
	} {
		got := Doubts(c.beliefs)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}

func TestALatencyIsBelievedUpToWhereItIsTheGenerators(t *testing.T) {
	const ms = 1_000_000
	counts := counted(map[Counter]int64{Due: 12_000, Sent: 12_000, Confirmed: 12_000, Received: 12_000})
	for name, c := range map[string]struct {
		latency, lag, hiccups *hist.Histogram
		failed                int64
		upTo                  float64
		says                  string
	}{
		"all of it": {
			latency: spread(12_000, 5*ms), lag: spread(12_000, ms/10), upTo: 0.999, says: "as far as its samples reach, up to p99.9",
		},
		"a tail that is the generator's": {
			latency: spread(11_900, 5*ms, 40*ms, 40*ms, 40*ms, 40*ms, 40*ms), lag: spread(11_900, ms/10, 30*ms, 30*ms, 30*ms, 30*ms, 30*ms), upTo: 0.99,
			says: "can be believed up to p99: 75 % of its p99.9",
		},
		"a tail that is the machine's": {
			latency: spread(11_900, 5*ms, 40*ms, 40*ms, 40*ms, 40*ms, 40*ms), lag: spread(12_000, ms/10),
			hiccups: spread(11_900, 0, 20*ms, 20*ms, 20*ms, 20*ms, 20*ms), upTo: 0.99, says: "50 % of its p99.9",
		},
		"a tail that is the broker's": {
			latency: spread(11_900, 5*ms, 40*ms, 40*ms, 40*ms, 40*ms, 40*ms), lag: spread(11_900, ms/10, 3*ms, 3*ms, 3*ms, 3*ms, 3*ms), upTo: 0.999,
		},
		"small, below what a system would notice": {
			latency: spread(12_000, ms/5), lag: spread(12_000, ms/10), upTo: 0.999, says: "is 50 % of the p50, 50 % of the p90,",
		},
		"not even the median": {latency: spread(12_000, 10*ms), lag: spread(12_000, 9*ms), says: "not even the median"},
		"failed sends are absent": {
			latency: spread(12_000, 5*ms), lag: spread(12_000, ms/10), failed: 6, upTo: 0.99, says: "0.050 % of the messages, which count as the slowest, are not in it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			topic := TopicResult{Topic: "orders", Counts: counts, OpenLoop: true, hiccups: c.hiccups, Trends: map[string]*hist.Histogram{
				PublishLatency.String(): c.latency, GeneratorLag.String(): c.lag,
			}}
			if c.failed > 0 {
				topic.Errors = []ErrorCount{{"send", driver.Timeout, c.failed}}
			}
			r := &Result{Topics: []TopicResult{topic}}
			r.Topics[0].Describe()
			r.Judge(Circumstances{})
			upTo, ok := believedUpTo(r.Topics[0].Percentiles[PublishLatency.String()])
			if ok != (c.upTo > 0) || upTo != c.upTo {
				t.Errorf("believed up to %v, want %v", upTo, c.upTo)
			}
			doubted := c.upTo > 0 && c.upTo < 0.999
			if (r.Verdict.UpTo == c.upTo && doubted) != doubted || !doubted && r.Verdict.UpTo != 0 {
				t.Errorf("valid up to %v", r.Verdict.UpTo)
			}
			beliefs := r.Verdict.Beliefs
			if len(beliefs) != 1 || beliefs[0].UpTo != c.upTo || beliefs[0].Topic != "orders" {
				t.Errorf("%+v", beliefs)
			}
			all := strings.Join(append(append(r.Verdict.Reasons, r.Verdict.Notes...), beliefs[0].String()), "\n")
			if !strings.Contains(all, c.says) || r.Verdict.Valid != (c.upTo > 0) {
				t.Errorf("%+v", r.Verdict)
			}
		})
	}
}

// With too few messages for a p99 the verdict rests on none.
func TestTheVerdictRestsOnWhatItsSamplesSupport(t *testing.T) {
	const ms = 1_000_000
	lag, latency := &hist.Histogram{}, &hist.Histogram{}
	lag.RecordN(ms/10, 59)
	lag.Record(15 * ms)
	latency.RecordN(3*ms, 59)
	latency.Record(18 * ms)
	r := &Result{Topics: []TopicResult{{
		Topic: "orders", OpenLoop: true, Counts: counted(map[Counter]int64{Due: 60, Sent: 60, Confirmed: 60, Received: 60}),
		Trends: map[string]*hist.Histogram{PublishLatency.String(): latency, GeneratorLag.String(): lag},
	}}}
	r.Topics[0].Describe()
	if r.Judge(Circumstances{}); !r.Verdict.Valid {
		t.Errorf("%+v", r.Verdict)
	}
}

// A loop has latencies of its own, so that a few failures among many sends may be many of its.
func TestEachLoopIsBelievedByItself(t *testing.T) {
	topic := TopicResult{
		Broker: "b", Topic: "orders", OpenLoop: true, ClosedLoop: true, Errors: []ErrorCount{{"send", driver.Rejected, 50}},
		Counts: counted(map[Counter]int64{Due: 150_150, Sent: 150_150, Confirmed: 150_100, Received: 150_090}),
		Trends: map[string]*hist.Histogram{},
	}
	drained := accounted(150_100, 150_090)
	drained.Missing, drained.Drained = 0, 10
	topic.Groups = []GroupResult{{Accounting: drained, Trends: map[string]*hist.Histogram{}}}
	for name, n := range map[string]uint64{
		"publish_latency": 150_000, "publish_time": 150_000, "e2e_latency": 149_990, "e2e_time": 149_990,
		"publish_latency_closed": 100, "publish_time_closed": 100, "e2e_latency_closed": 100, "e2e_time_closed": 100, "failed_latency_closed": 50,
	} {
		topic.Trends[name] = spread(n, msec)
		if strings.HasPrefix(name, "e2e") {
			topic.Groups[0].Trends[name] = topic.Trends[name]
		}
	}
	r := &Result{Topics: []TopicResult{topic}}
	r.Describe()
	r.Judge(Circumstances{})
	for name, want := range map[string]float64{
		"publish_latency": 0.9999, "publish_time": 0.9999, "e2e_latency": 0.999, "e2e_time": 0.999,
		"publish_latency_closed": 0, "publish_time_closed": 0, "e2e_latency_closed": 0, "e2e_time_closed": 0,
	} {
		for where, all := range map[string][]Percentile{"topic": r.Topics[0].Percentiles[name], "group": r.Topics[0].Groups[0].Percentiles[name]} {
			if upTo, _ := believedUpTo(all); upTo != want && all != nil {
				t.Errorf("%s of the %s is believed up to %v, want %v", name, where, upTo, want)
			}
		}
	}
	if r.Verdict.Valid || !r.Verdict.Latencies || !r.Verdict.Account {
		t.Errorf("%+v", r.Verdict)
	}
	reasons := strings.Join(r.Verdict.Reasons, "\n")
	for _, want := range []string{
		"orders: 50 of 150 sends of its closed loop failed (33 %)", "not even the median of the publish latency of the closed loop can be believed: 33 %",
		"not even the median of the end-to-end latency of the closed loop can be believed: 38 %", // the drained ones may be its too
	} {
		if !strings.Contains(reasons, want) {
			t.Errorf("no %q in\n%s", want, reasons)
		}
	}
	// Of the ten that were drained, all may be of the loop of a hundred, unless it has received all of its own.
	r.Topics[0].Errors = nil
	delete(r.Topics[0].Trends, "failed_latency_closed")
	for n, want := range map[uint64]float64{100: 0.9, 95: 0.5} {
		r.Topics[0].Trends["e2e_latency_closed"] = spread(n, msec)
		r.Topics[0].Groups[0].Trends["e2e_latency_closed"] = spread(n, msec)
		r.Describe()
		if upTo, _ := believedUpTo(r.Topics[0].Percentiles["e2e_latency_closed"]); upTo != want {
			t.Errorf("of %d received, believed up to %v, want %v", n, upTo, want)
		}
	}
}

// What failed in a loop of one scenario is absent from that, and from no other.
func TestFailuresOfASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{})
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
		for at, want := range map[*Series][NumLoops]uint64{b.series: {}, rare: {Closed: 2}} {
			for l := range Loop(NumLoops) {
				for trend, n := range map[Trend]uint64{PublishLatency: want[l], PublishTime: want[l], RequestLatency: 0, ScheduleLag: 0} {
					if got := at.Failed(l, trend); got != n {
						t.Errorf("%v, %s %s: %d, want %d", at.Tags, l, trend, got, n)
					}
				}
			}
		}
	})
}
