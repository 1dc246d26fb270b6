package verdict

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// judgement is what a verdict must say of a topic.
type judgement struct {
	topic  result.Topic
	c      Circumstances
	reason string // "" for a valid run
	note   string
	stands uint8 // what the reason does not speak against
}

const (
	latenciesStand = 1
	accountStands  = 2
	both           = 3
)

func counted(counts map[recording.Counter]int64) map[string]int64 {
	named := map[string]int64{}
	for c, n := range counts {
		named[c.String()] = n
	}
	return named
}

func only(a account.Account) []result.Group { return []result.Group{{Account: a}} }

func accounted(expected, received uint64) account.Account {
	a := account.Account{}
	a.Expected, a.Received = expected, received
	a.Missing = expected - received
	return a
}

func TestWhatSpeaksAgainstARun(t *testing.T) {
	sound := counted(map[recording.Counter]int64{recording.Due: 1000, recording.Sent: 1000, recording.Confirmed: 1000, recording.Received: 1000})
	with := func(c recording.Counter, n int64) map[string]int64 {
		more := map[string]int64{c.String(): n}
		for name, n := range sound {
			if name != c.String() {
				more[name] = n
			}
		}
		return more
	}
	send := func(n int64) []result.ErrorCount { return []result.ErrorCount{{Op: "send", Kind: "timeout", Count: n}} }
	drained := accounted(1000, 990)
	drained.Drained, drained.Missing = 10, 0
	unexpected := accounted(2, 0)
	unexpected.Drained, unexpected.Unexpected, unexpected.Missing = 6, 4, 0
	few := accounted(10_000, 9_999)
	few.Drained, few.Missing = 1, 0
	undelivered, uncertain, lost := accounted(1000, 900), accounted(1000, 900), accounted(1000, 900)
	undelivered.Undelivered, lost.Lost = 100, 100
	uncertain.Doubt(account.NoBacklog, 100)
	for name, j := range map[string]judgement{
		"sound":             {topic: result.Topic{Counts: sound, Groups: only(accounted(1000, 1000))}, stands: both},
		"nothing":           {topic: result.Topic{}, reason: "nothing-measured why=nothing"},
		"errors only":       {topic: result.Topic{Errors: []result.ErrorCount{{Op: "connect", Kind: "denied", Count: 1}}}, reason: "nothing-measured why=nothing topic=orders"},
		"nothing confirmed": {topic: result.Topic{Counts: counted(map[recording.Counter]int64{recording.Sent: 9}), Errors: send(9)}, reason: "nothing-measured why=unconfirmed count=9"},
		"failing sends":     {topic: result.Topic{Counts: sound, Errors: send(2)}, reason: "sends-failed count=2 sends=sends", stands: accountStands},
		"a failing send":    {topic: result.Topic{Counts: sound, Errors: send(1)}, note: "sends-failed count=1", stands: both},
		"never sent":        {topic: result.Topic{Counts: with(recording.Due, 1001)}, reason: "load-incomplete why=due count=1", stands: accountStands},
		"nobody received": {
			topic: result.Topic{Counts: with(recording.Received, 0), Declared: true}, reason: "nothing-received topic=orders", stands: latenciesStand,
		},
		"drained":                  {topic: result.Topic{Counts: sound, Groups: only(drained)}, reason: "drained count=10 share=0.01", stands: accountStands},
		"drained and not expected": {topic: result.Topic{Counts: sound, Groups: only(unexpected)}, reason: "drained count=6 share=1", stands: accountStands},
		"one drained":              {topic: result.Topic{Counts: sound, Groups: only(few)}, note: "drained count=1", stands: both},
		"undelivered":              {topic: result.Topic{Counts: sound, Groups: only(undelivered)}, reason: "undelivered count=100 share=0.1", stands: accountStands},
		"uncertain":                {topic: result.Topic{Counts: sound, Groups: only(uncertain)}, reason: "uncertain why=no-backlog count=100", stands: latenciesStand},
		"lost":                     {topic: result.Topic{Counts: sound, Groups: only(lost)}, note: "lost count=100 total=1000 share=0.1", stands: both},
		"aliased":                  {topic: result.Topic{Counts: with(recording.Aliased, 7)}, reason: "uncertain why=aliased count=7", stands: latenciesStand},
		"earlier":                  {topic: result.Topic{Counts: with(recording.Earlier, 7)}, reason: "earlier-test why=early count=7"},
		"negative":                 {topic: result.Topic{Counts: with(recording.Negative, 7)}, reason: "clocks why=negative count=7", stands: accountStands},
		"unstamped":                {topic: result.Topic{Counts: with(recording.Unaccounted, 7)}, note: "not-stamped count=7", stands: both},
		"strays":                   {topic: result.Topic{Counts: with(recording.StrayReplies, 7)}, note: "foreign why=replies count=7", stands: both},
		"foreign":                  {topic: result.Topic{Counts: with(recording.Foreign, 7)}, note: "foreign why=messages count=7", stands: both},
		"routed":                   {topic: result.Topic{Counts: with(recording.Routed, 7)}, note: "routed why=here count=7", stands: both},
		"ended early":              {topic: result.Topic{Counts: sound}, c: Circumstances{Ended: "interrupted"}, reason: "ended-early why=interrupted"},
		"dropped":                  {topic: result.Topic{Counts: sound}, c: Circumstances{Dropped: 3}, reason: "arrivals-dropped why=no-vu count=3", stands: accountStands},
		"unserved":                 {topic: result.Topic{Counts: sound}, c: Circumstances{Unserved: 3}, reason: "arrivals-dropped why=unserved count=3", stands: accountStands},
		"both loops": {
			topic: result.Topic{Counts: sound, OpenLoop: true, ClosedLoop: true}, note: "closed-loop why=part", stands: both,
		},
	} {
		t.Run(name, func(t *testing.T) {
			j.topic.Topic = "orders"
			j.topic.Trends = map[string]*hist.Histogram{}
			if len(j.topic.Errors) > 0 && j.topic.Counts["confirmed"] > 0 {
				j.topic.Trends["publish_latency"] = spread(1000, msec)
			}
			r := &result.Result{Topics: []result.Topic{j.topic}}
			Judge(r, j.c)
			v := r.Verdict
			if v.Valid != (j.reason == "") || j.reason != "" && !reasontest.Has(v.Invalid(), j.reason) || j.note != "" && !reasontest.Has(v.Notes(), j.note) {
				t.Errorf("%+v", reasontest.Codes(v.Reasons))
			}
			for _, r := range v.Reasons {
				if text := reason.Text(r); text == string(r.Code) || strings.Contains(text, "?") {
					t.Error(text)
				}
			}
			if v.Latencies != (j.stands&latenciesStand != 0) || v.Account != (j.stands&accountStands != 0) {
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

func TestALatencyIsBelievedUpToWhereItIsTheGenerators(t *testing.T) {
	const ms = 1_000_000
	counts := counted(map[recording.Counter]int64{recording.Due: 12_000, recording.Sent: 12_000, recording.Confirmed: 12_000, recording.Received: 12_000})
	for name, c := range map[string]struct {
		latency, lag, hiccups *hist.Histogram
		failed                int64
		upTo                  float64
		says                  string
	}{
		"all of it": {
			latency: spread(12_000, 5*ms), lag: spread(12_000, ms/10), upTo: 0.999, says: "",
		},
		"a tail that is the generator's": {
			latency: spread(11_900, 5*ms, 40*ms, 40*ms, 40*ms, 40*ms, 40*ms), lag: spread(11_900, ms/10, 30*ms, 30*ms, 30*ms, 30*ms, 30*ms), upTo: 0.99,
			says: "note why=late quantile=p99.9 upTo=0.99 share=0.75 late=0.03",
		},
		"a tail that is the machine's": {
			latency: spread(11_900, 5*ms, 40*ms, 40*ms, 40*ms, 40*ms, 40*ms), lag: spread(12_000, ms/10),
			hiccups: spread(11_900, 0, 20*ms, 20*ms, 20*ms, 20*ms, 20*ms), upTo: 0.99, says: "note why=late quantile=p99.9 share=0.5",
		},
		"a tail that is the broker's": {
			latency: spread(11_900, 5*ms, 40*ms, 40*ms, 40*ms, 40*ms, 40*ms), lag: spread(11_900, ms/10, 3*ms, 3*ms, 3*ms, 3*ms, 3*ms), upTo: 0.999,
		},
		"small, below what a system would notice": {
			latency: spread(12_000, ms/5), lag: spread(12_000, ms/10), upTo: 0.999,
		},
		"not even the median": {latency: spread(12_000, 10*ms), lag: spread(12_000, 9*ms), says: "invalid why=late quantile=p50"},
		"failed sends are absent": {
			latency: spread(12_000, 5*ms), lag: spread(12_000, ms/10), failed: 6, upTo: 0.99, says: "note why=missing quantile=p99.9 share=0.0004998",
		},
	} {
		t.Run(name, func(t *testing.T) {
			topic := result.Topic{Topic: "orders", Counts: counts, OpenLoop: true, Trends: map[string]*hist.Histogram{
				recording.PublishLatency.String(): c.latency, recording.GeneratorLag.String(): c.lag,
			}}
			if c.failed > 0 {
				topic.Errors = []result.ErrorCount{{Op: "send", Kind: "timeout", Count: c.failed}}
			}
			r := &result.Result{Topics: []result.Topic{topic}, Platform: &result.Platform{Hiccups: c.hiccups}}
			Judge(r, Circumstances{})
			upTo, ok := reliableUpTo(r.Topics[0].Percentiles[recording.PublishLatency.String()])
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
			if has := reasontest.Has(r.Verdict.Reasons, "percentile-not-reliable latency=publish_latency "+c.says); has != (c.says != "") || r.Verdict.Valid != (c.upTo > 0) {
				t.Errorf("%q, %v", reasontest.Codes(r.Verdict.Reasons), r.Verdict.Valid)
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
	r := &result.Result{Topics: []result.Topic{{
		Topic: "orders", OpenLoop: true, Counts: counted(map[recording.Counter]int64{recording.Due: 60, recording.Sent: 60, recording.Confirmed: 60, recording.Received: 60}),
		Trends: map[string]*hist.Histogram{recording.PublishLatency.String(): latency, recording.GeneratorLag.String(): lag},
	}}}
	if Judge(r, Circumstances{}); !r.Verdict.Valid {
		t.Errorf("%+v", r.Verdict)
	}
}

// A request without a reply failed; whether its message was received is another matter, and end-to-end latency has it where it was.
func TestAnUnansweredRequestMayHaveBeenReceived(t *testing.T) {
	topic := func(failed int, op string, received uint64) result.Topic {
		const sent = 1000
		e2e := spread(received, msec)
		a := accounted(sent, received)
		a.Group = "workers"
		of := result.Topic{
			Topic: "orders", OpenLoop: true, Errors: []result.ErrorCount{{Op: op, Kind: "timeout", Count: int64(failed)}},
			Counts: counted(map[recording.Counter]int64{recording.Due: sent, recording.Sent: sent, recording.Confirmed: sent, recording.Received: int64(received), recording.Unanswered: int64(failed)}),
			Trends: map[string]*hist.Histogram{"failed_latency": spread(uint64(failed), 2000*msec), "e2e_latency": e2e},
			Groups: []result.Group{{Account: a, Trends: map[string]*hist.Histogram{"e2e_latency": e2e}}},
		}
		if op == "send" {
			of.Groups[0].Expected, of.Groups[0].Missing, of.Groups[0].Unexpected = sent-uint64(failed), 0, uint64(failed)
			of.Counts[recording.Confirmed.String()] -= int64(failed)
		}
		of.Trends[map[string]string{"send": "publish_latency", "request": "request_latency"}[op]] = spread(sent-uint64(failed), msec)
		return of
	}
	for name, c := range map[string]struct {
		topic         result.Topic
		e2e, requests float64 // up to where they are believed
		says          string
	}{
		"all were received":  {topic(100, "request", 1000), 0.99, 0, "sends-failed sends=requests count=100 total=1000"},
		"some were not":      {topic(100, "request", 980), 0.5, 0, ""},
		"none was":           {topic(100, "request", 900), 0, 0, "percentile-not-reliable latency=end-to-end_latency why=missing upTo=0 share=0.1"},
		"sends are received": {topic(100, "send", 1000), 0.99, 0, "sends-failed sends=sends count=100 total=1000"},
	} {
		t.Run(name, func(t *testing.T) {
			c.topic.Phases = map[string]result.Window{result.Measure: {
				Counts: c.topic.Counts, Errors: c.topic.Errors, Trends: c.topic.Trends,
				Groups: []result.WindowGroup{{Group: "workers", Trends: c.topic.Groups[0].Trends}},
			}}
			r := &result.Result{Seconds: 10, Phases: []result.Phase{{Name: result.Measure, Seconds: 10, Stretches: []result.Stretch{{From: 0, To: 10}}}}, Topics: []result.Topic{c.topic}}
			Judge(r, Circumstances{})
			total, during := Total(r), r.During(result.Measure)
			for where, all := range map[string]map[string][]result.Percentile{
				"the topic": r.Topics[0].Percentiles, "its group": r.Topics[0].Groups[0].Percentiles, "the total": total.Percentiles, "the phase": during.Topics[0].Percentiles,
			} {
				if upTo, _ := reliableUpTo(all["e2e_latency"]); upTo != c.e2e {
					t.Errorf("end-to-end latency of %s is believed up to %v, want %v", where, upTo, c.e2e)
				}
				if upTo, _ := reliableUpTo(all["request_latency"]); upTo != c.requests {
					t.Errorf("request latency of %s is believed up to %v, want %v", where, upTo, c.requests)
				}
			}
			if c.says != "" && !reasontest.Has(r.Verdict.Reasons, "invalid "+c.says) {
				t.Errorf("no %q in %q", c.says, reasontest.Codes(r.Verdict.Reasons))
			}
		})
	}
}

// A loop has latencies of its own, so that a few failures among many sends may be many of its.
func TestEachLoopIsBelievedByItself(t *testing.T) {
	topic := result.Topic{
		Broker: "b", Topic: "orders", OpenLoop: true, ClosedLoop: true, Errors: []result.ErrorCount{{Op: "send", Kind: "rejected", Count: 50}},
		Counts: counted(map[recording.Counter]int64{recording.Due: 150_150, recording.Sent: 150_150, recording.Confirmed: 150_100, recording.Received: 150_090}),
		Trends: map[string]*hist.Histogram{},
	}
	drained := accounted(150_100, 150_090)
	drained.Missing, drained.Drained = 0, 10
	topic.Groups = []result.Group{{Account: drained, Trends: map[string]*hist.Histogram{}}}
	for name, n := range map[string]uint64{
		"publish_latency": 150_000, "publish_time": 150_000, "e2e_latency": 149_990, "e2e_time": 149_990,
		"publish_latency_closed": 100, "publish_time_closed": 100, "e2e_latency_closed": 100, "e2e_time_closed": 100, "failed_latency_closed": 50,
	} {
		topic.Trends[name] = spread(n, msec)
		if strings.HasPrefix(name, "e2e") {
			topic.Groups[0].Trends[name] = topic.Trends[name]
		}
	}
	r := &result.Result{Topics: []result.Topic{topic}}
	Judge(r, Circumstances{})
	for name, want := range map[string]float64{
		"publish_latency": 0.9999, "publish_time": 0.9999, "e2e_latency": 0.999, "e2e_time": 0.999,
		"publish_latency_closed": 0, "publish_time_closed": 0, "e2e_latency_closed": 0, "e2e_time_closed": 0,
	} {
		for where, all := range map[string][]result.Percentile{"topic": r.Topics[0].Percentiles[name], "group": r.Topics[0].Groups[0].Percentiles[name]} {
			if upTo, _ := reliableUpTo(all); upTo != want && all != nil {
				t.Errorf("%s of the %s is believed up to %v, want %v", name, where, upTo, want)
			}
		}
	}
	if r.Verdict.Valid || !r.Verdict.Account {
		t.Errorf("%+v", r.Verdict)
	}
	for _, want := range []string{
		"percentile-not-reliable latency=publish_latency_of_the_closed_loop upTo=0",
		"percentile-not-reliable latency=end-to-end_latency_of_the_closed_loop upTo=0",
	} {
		if !reasontest.Has(r.Verdict.Invalid(), want) {
			t.Errorf("no %q in %q", want, reasontest.Codes(r.Verdict.Reasons))
		}
	}
}

// k6 counts arrivals for which no VU was free, and what maxDuration cut off of a given number of iterations, as one: the executors say which they are.
func TestDroppedIterations(t *testing.T) {
	for executors, want := range map[string]struct {
		said  string
		valid bool
	}{
		"":                                       {"invalid why=no-vu", false},
		"constant-arrival-rate":                  {"invalid why=no-vu", false},
		"consumers per-vu-iterations":            {"note why=max-duration", true},
		"shared-iterations":                      {"note why=max-duration", true},
		"ramping-arrival-rate shared-iterations": {"invalid why=no-vu", false},
	} {
		r := &result.Result{Topics: []result.Topic{{Topic: "orders", Counts: map[string]int64{"sent": 1, "confirmed": 1}}}}
		for _, e := range strings.Fields(executors) {
			r.Test.Scenarios = append(r.Test.Scenarios, result.Scenario{Executor: e})
		}
		Judge(r, Circumstances{Dropped: 3})
		if r.Verdict.Valid != want.valid || !reasontest.Has(r.Verdict.Reasons, "arrivals-dropped count=3 "+want.said) {
			t.Errorf("%q: valid %v: %q", executors, r.Verdict.Valid, reasontest.Codes(r.Verdict.Reasons))
		}
	}
}

func TestReasons_TopicsOfOneNameAtTwoBrokers_NameTheBroker(t *testing.T) {
	left := accounted(1000, 900)
	left.Missing, left.Undelivered, left.Group = 0, 100, "g"
	topic := func(broker string) result.Topic {
		return result.Topic{Broker: broker, Topic: "orders", Counts: counted(map[recording.Counter]int64{recording.Sent: 1000, recording.Confirmed: 1000, recording.Received: 900}), Groups: only(left)}
	}
	for _, c := range []struct {
		topics []result.Topic
		want   string
	}{
		{[]result.Topic{topic("kafka://a"), topic("kafka://b")}, "topic=orders_at_kafka://b group=g"},
		{[]result.Topic{topic("kafka://a")}, "topic=orders group=g"},
	} {
		r := &result.Result{Seconds: 10, Topics: c.topics}
		Judge(r, Circumstances{})
		if !reasontest.Has(r.Verdict.Invalid(), c.want) {
			t.Errorf("no %q in %q", c.want, reasontest.Codes(r.Verdict.Reasons))
		}
	}
}

func TestLost_OutsideClientMayHoldIt_NoteHasIt(t *testing.T) {
	lost := accounted(1000, 900)
	lost.Missing, lost.Lost = 0, 100
	r := &result.Result{Seconds: 10, Topics: []result.Topic{{
		Topic: "orders", HeldUnseen: true, Groups: only(lost),
		Counts: counted(map[recording.Counter]int64{recording.Sent: 1000, recording.Confirmed: 1000, recording.Received: 900}),
	}}}
	Judge(r, Circumstances{})
	if !reasontest.Has(r.Verdict.Notes(), "lost count=100 why=held") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
}

// reliableUpTo returns the greatest reliable quantile; false if there is none.
func reliableUpTo(all []result.Percentile) (q float64, ok bool) {
	for _, p := range all {
		if !p.Believed {
			break
		}
		q, ok = p.Q, true
	}
	return q, ok
}
