package result

import (
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// judgement is what a verdict must say of a topic.
type judgement struct {
	topic  Topic
	c      Circumstances
	reason string // "" for a valid run
	note   string
	stands about // what the reason does not speak against
}

func counted(counts map[metric.Counter]int64) map[string]int64 {
	named := map[string]int64{}
	for c, n := range counts {
		named[c.String()] = n
	}
	return named
}

func only(a Account) []Group { return []Group{{Account: a}} }

func accounted(expected, received uint64) Account {
	a := Account{}
	a.Expected, a.Received = expected, received
	a.Missing = expected - received
	return a
}

func TestWhatSpeaksAgainstARun(t *testing.T) {
	sound := counted(map[metric.Counter]int64{metric.Due: 1000, metric.Sent: 1000, metric.Confirmed: 1000, metric.Received: 1000})
	with := func(c metric.Counter, n int64) map[string]int64 {
		more := map[string]int64{c.String(): n}
		for name, n := range sound {
			if name != c.String() {
				more[name] = n
			}
		}
		return more
	}
	send := func(n int64) []ErrorCount { return []ErrorCount{{"send", "timeout", n}} }
	drained := accounted(1000, 990)
	drained.Drained, drained.Missing = 10, 0
	unexpected := accounted(2, 0)
	unexpected.Drained, unexpected.Unexpected, unexpected.Missing = 6, 4, 0
	few := accounted(10_000, 9_999)
	few.Drained, few.Missing = 1, 0
	oneRemoved := accounted(10_000, 9_999)
	oneRemoved.Removed, oneRemoved.Missing = 1, 0
	undelivered, uncertain, lost := accounted(1000, 900), accounted(1000, 900), accounted(1000, 900)
	undelivered.Undelivered, uncertain.Uncertain, lost.Lost = 100, 100, 100
	for name, j := range map[string]judgement{
		"sound":             {topic: Topic{Counts: sound, Groups: only(accounted(1000, 1000))}, stands: latencies | account},
		"nothing":           {topic: Topic{}, reason: "nothing was measured"},
		"errors only":       {topic: Topic{Errors: []ErrorCount{{"connect", "denied", 1}}}, reason: "nothing was sent and nothing received"},
		"nothing confirmed": {topic: Topic{Counts: counted(map[metric.Counter]int64{metric.Sent: 9}), Errors: send(9)}, reason: "none of 9 messages was confirmed"},
		"failing sends":     {topic: Topic{Counts: sound, Errors: send(2)}, reason: "2 of 1000 sends failed (0.20 %)", stands: account},
		"a failing send":    {topic: Topic{Counts: sound, Errors: send(1)}, note: "1 of 1000 sends failed", stands: latencies | account},
		"never sent":        {topic: Topic{Counts: with(metric.Due, 1001)}, reason: "1 message was due but never sent", stands: account},
		"nobody received": {
			topic: Topic{Counts: with(metric.Received, 0), Declared: true}, reason: "a consumer that received nothing", stands: latencies,
		},
		"drained":                  {topic: Topic{Counts: sound, Groups: only(drained)}, reason: "10 messages (1.0 %) reached no consumer", stands: account},
		"drained and not expected": {topic: Topic{Counts: sound, Groups: only(unexpected)}, reason: "6 messages (100 %) reached no consumer", stands: account},
		"drained names its option": {topic: Topic{Counts: sound, Groups: only(drained)}, reason: "drainTimeout, an option of connect", stands: account},
		"one drained":              {topic: Topic{Counts: sound, Groups: only(few)}, note: "1 message was read at the end", stands: latencies | account},
		"one removed":              {topic: Topic{Counts: sound, Groups: only(oneRemoved)}, note: "1 message was removed from the broker", stands: latencies | account},
		"undelivered":              {topic: Topic{Counts: sound, Groups: only(undelivered)}, reason: "100 messages (10 %) were still at the broker", stands: account},
		"uncertain":                {topic: Topic{Counts: sound, Groups: only(uncertain)}, reason: "it cannot be told whether", stands: latencies},
		"lost":                     {topic: Topic{Counts: sound, Groups: only(lost)}, stands: latencies | account},
		"aliased":                  {topic: Topic{Counts: with(metric.Aliased, 7)}, reason: "name it by one URL", stands: latencies},
		"earlier":                  {topic: Topic{Counts: with(metric.Earlier, 7)}, reason: "an earlier test with the same BROKER_RUN"},
		"negative":                 {topic: Topic{Counts: with(metric.Negative, 7)}, reason: "arrived before they were sent", stands: account},
		"unstamped":                {topic: Topic{Counts: with(metric.Unaccounted, 7)}, note: "sent without a stamp", stands: latencies | account},
		"unanswered":               {topic: Topic{Counts: with(metric.Unanswered, 7)}, note: "requests without a reply in time: 7", stands: latencies | account},
		"strays":                   {topic: Topic{Counts: with(metric.StrayReplies, 7)}, note: "replies to no request of this test: 7", stands: latencies | account},
		"foreign":                  {topic: Topic{Counts: with(metric.Foreign, 7)}, note: "belong to other tests", stands: latencies | account},
		"routed":                   {topic: Topic{Counts: with(metric.Routed, 7)}, note: "how many did not come is not known", stands: latencies | account},
		"routed here":              {topic: Topic{Counts: with(metric.Routed, 7), Alone: true}, note: "in no account of what was lost", stands: latencies | account},
		"ended early":              {topic: Topic{Counts: sound}, c: Circumstances{Ended: "it was interrupted"}, reason: "it was interrupted"},
		"dropped":                  {topic: Topic{Counts: sound}, c: Circumstances{Dropped: 3}, reason: "k6 dropped 3 arrivals", stands: account},
		"unserved":                 {topic: Topic{Counts: sound}, c: Circumstances{Unserved: 3}, reason: "3 arrivals were due", stands: account},
		"both loops": {
			topic: Topic{Counts: sound, OpenLoop: true, ClosedLoop: true}, note: "by the tag loop", stands: latencies | account,
		},
	} {
		t.Run(name, func(t *testing.T) {
			j.topic.Topic = "orders"
			j.topic.Trends = map[string]*hist.Histogram{}
			r := &Result{Topics: []Topic{j.topic}}
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
	counts := counted(map[metric.Counter]int64{metric.Due: 12_000, metric.Sent: 12_000, metric.Confirmed: 12_000, metric.Received: 12_000})
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
			topic := Topic{Topic: "orders", Counts: counts, OpenLoop: true, Seen: c.hiccups, Trends: map[string]*hist.Histogram{
				metric.PublishLatency.String(): c.latency, metric.GeneratorLag.String(): c.lag,
			}}
			if c.failed > 0 {
				topic.Errors = []ErrorCount{{"send", "timeout", c.failed}}
			}
			r := &Result{Topics: []Topic{topic}}
			r.Topics[0].Describe()
			r.Judge(Circumstances{})
			upTo, ok := believedUpTo(r.Topics[0].Percentiles[metric.PublishLatency.String()])
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
	r := &Result{Topics: []Topic{{
		Topic: "orders", OpenLoop: true, Counts: counted(map[metric.Counter]int64{metric.Due: 60, metric.Sent: 60, metric.Confirmed: 60, metric.Received: 60}),
		Trends: map[string]*hist.Histogram{metric.PublishLatency.String(): latency, metric.GeneratorLag.String(): lag},
	}}}
	r.Topics[0].Describe()
	if r.Judge(Circumstances{}); !r.Verdict.Valid {
		t.Errorf("%+v", r.Verdict)
	}
}

// A request without a reply failed; whether its message was received is another matter, and end-to-end latency has it where it was.
func TestAnUnansweredRequestMayHaveBeenReceived(t *testing.T) {
	topic := func(failed int, op string, received uint64) Topic {
		const sent = 1000
		e2e := spread(received, msec)
		a := accounted(sent, received)
		a.Group = "workers"
		of := Topic{
			Topic: "orders", OpenLoop: true, Errors: []ErrorCount{{op, "timeout", int64(failed)}},
			Counts: counted(map[metric.Counter]int64{metric.Due: sent, metric.Sent: sent, metric.Confirmed: sent, metric.Received: int64(received), metric.Unanswered: int64(failed)}),
			Trends: map[string]*hist.Histogram{"failed_latency": spread(uint64(failed), 2000*msec), "e2e_latency": e2e},
			Groups: []Group{{Account: a, Trends: map[string]*hist.Histogram{"e2e_latency": e2e}}},
		}
		if op == "send" {
			of.Groups[0].Expected, of.Groups[0].Missing = sent-uint64(failed), 0
			of.Counts[metric.Confirmed.String()] -= int64(failed)
		}
		of.Trends[map[string]string{"send": "publish_latency", "request": "request_latency"}[op]] = spread(sent-uint64(failed), msec)
		return of
	}
	for name, c := range map[string]struct {
		topic         Topic
		e2e, requests float64 // up to where they are believed
		says          string
	}{
		"all were received":  {topic(100, "request", 1000), 0.99, 0, "100 of 1000 requests failed (10 %): request latency is that of the others only"},
		"some were not":      {topic(100, "request", 980), 0.5, 0, ""},
		"none was":           {topic(100, "request", 900), 0, 0, "not even the median of the request latency and end-to-end latency can be believed: 10 %"},
		"sends are received": {topic(100, "send", 1000), 0.99, 0, "100 of 1000 sends failed (10 %): the latencies are those of the others only"},
	} {
		t.Run(name, func(t *testing.T) {
			c.topic.Phases = map[string]Window{Measure: {
				Counts: c.topic.Counts, Errors: c.topic.Errors, Trends: c.topic.Trends,
				Groups: []WindowGroup{{Group: "workers", Trends: c.topic.Groups[0].Trends}},
			}}
			r := &Result{Seconds: 10, Phases: []Phase{{Name: Measure, Seconds: 10, Stretches: []Stretch{{0, 10}}}}, Topics: []Topic{c.topic}}
			r.Describe()
			r.Judge(Circumstances{})
			total, during := r.Total(), r.During(Measure)
			for where, all := range map[string]map[string][]Percentile{
				"the topic": r.Topics[0].Percentiles, "its group": r.Topics[0].Groups[0].Percentiles, "the total": total.Percentiles, "the phase": during.Topics[0].Percentiles,
			} {
				if upTo, _ := believedUpTo(all["e2e_latency"]); upTo != c.e2e {
					t.Errorf("end-to-end latency of %s is believed up to %v, want %v", where, upTo, c.e2e)
				}
				if upTo, _ := believedUpTo(all["request_latency"]); upTo != c.requests {
					t.Errorf("request latency of %s is believed up to %v, want %v", where, upTo, c.requests)
				}
			}
			if all := strings.Join(append(r.Verdict.Reasons, r.Verdict.Notes...), "\n"); !strings.Contains(all, c.says) {
				t.Errorf("no %q in\n%s", c.says, all)
			}
		})
	}
}

// A loop has latencies of its own, so that a few failures among many sends may be many of its.
func TestEachLoopIsBelievedByItself(t *testing.T) {
	topic := Topic{
		Broker: "b", Topic: "orders", OpenLoop: true, ClosedLoop: true, Errors: []ErrorCount{{"send", "rejected", 50}},
		Counts: counted(map[metric.Counter]int64{metric.Due: 150_150, metric.Sent: 150_150, metric.Confirmed: 150_100, metric.Received: 150_090}),
		Trends: map[string]*hist.Histogram{},
	}
	drained := accounted(150_100, 150_090)
	drained.Missing, drained.Drained = 0, 10
	topic.Groups = []Group{{Account: drained, Trends: map[string]*hist.Histogram{}}}
	for name, n := range map[string]uint64{
		"publish_latency": 150_000, "publish_time": 150_000, "e2e_latency": 149_990, "e2e_time": 149_990,
		"publish_latency_closed": 100, "publish_time_closed": 100, "e2e_latency_closed": 100, "e2e_time_closed": 100, "failed_latency_closed": 50,
	} {
		topic.Trends[name] = spread(n, msec)
		if strings.HasPrefix(name, "e2e") {
			topic.Groups[0].Trends[name] = topic.Trends[name]
		}
	}
	r := &Result{Topics: []Topic{topic}}
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
		"orders: 50 of 150 sends of its closed loop failed (33 %)", "not even the median of the publish latency of the closed loop and",
		" and end-to-end latency of the closed loop can be believed: 33 %", // it was to have 150, and has a hundred
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

// k6 counts arrivals for which no VU was free, and what maxDuration cut off of a given number of iterations, as one: the executors say which they are.
func TestDroppedIterations(t *testing.T) {
	for executors, want := range map[string]struct {
		said  string
		valid bool
	}{
		"":                            {"k6 dropped 3 arrivals because no VU was free", false},
		"constant-arrival-rate":       {"k6 dropped 3 arrivals because no VU was free", false},
		"consumers per-vu-iterations": {"3 iterations never ran, because the maxDuration of their scenario was over", true},
		"shared-iterations":           {"3 iterations never ran, because the maxDuration of their scenario was over", true},
		"ramping-arrival-rate shared-iterations": {"k6 dropped 3 iterations: arrivals because no VU was free, so that the slowest moments are missing from the latencies, or " +
			"what the maxDuration", false},
	} {
		r := &Result{Topics: []Topic{{Topic: "orders", Counts: map[string]int64{"sent": 1, "confirmed": 1}}}}
		for _, e := range strings.Fields(executors) {
			r.Test.Scenarios = append(r.Test.Scenarios, Scenario{Executor: e})
		}
		r.Judge(Circumstances{Dropped: 3})
		if said := strings.Join(append(r.Verdict.Reasons, r.Verdict.Notes...), "\n"); r.Verdict.Valid != want.valid || !strings.Contains(said, want.said) {
			t.Errorf("%q: valid %v: %s", executors, r.Verdict.Valid, said)
		}
	}
}

func TestReasons_TopicsOfOneNameAtTwoBrokers_NameTheBroker(t *testing.T) {
	left := accounted(1000, 900)
	left.Missing, left.Undelivered, left.Group = 0, 100, "g"
	topic := func(broker string) Topic {
		return Topic{Broker: broker, Topic: "orders", Counts: counted(map[metric.Counter]int64{metric.Sent: 1000, metric.Confirmed: 1000, metric.Received: 900}), Groups: only(left)}
	}
	for _, c := range []struct {
		topics []Topic
		want   string
	}{
		{[]Topic{topic("kafka://a"), topic("kafka://b")}, "orders at kafka://b, g: "},
		{[]Topic{topic("kafka://a")}, "orders, g: "},
	} {
		r := &Result{Seconds: 10, Topics: c.topics}
		r.Describe()
		r.Judge(Circumstances{})
		if all := strings.Join(r.Verdict.Reasons, "\n"); !strings.Contains(all, c.want) {
			t.Errorf("no %q in\n%s", c.want, all)
		}
	}
}

func TestLost_BrokerDropsByOption_NoteNamesTheOption(t *testing.T) {
	lost := accounted(1000, 900)
	lost.Missing, lost.Lost = 0, 100
	for want, drops := range map[string][]string{
		"orders: the broker may have dropped the messages lost, because the test set maxLength 5": {"maxLength 5"},
		"as basic.get does": nil,
	} {
		r := &Result{Seconds: 10, Topics: []Topic{{
			Topic: "orders", HeldUnseen: true, Drops: drops, Groups: only(lost),
			Counts: counted(map[metric.Counter]int64{metric.Sent: 1000, metric.Confirmed: 1000, metric.Received: 900}),
		}}}
		r.Describe()
		r.Judge(Circumstances{})
		if all := strings.Join(r.Verdict.Notes, "\n"); !strings.Contains(all, want) || strings.Contains(all, "basic.get") != (drops == nil) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}
