package verdict

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

const msec = 1_000_000

func condition(t *testing.T, source string) Condition {
	t.Helper()
	c, err := ParseCondition(source)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sure is a result that nothing speaks against.
func sure(topics ...result.Topic) *result.Result {
	r := &result.Result{Topics: topics}
	Describe(r)
	r.Verdict = result.Verdict{Valid: true, Latencies: true, Account: true}
	return r
}

// A stall of 45 of 300,000 messages is beyond what a systematic choice of 3,000 can show. It is decided on all of them, and every
// percentile is the one that sorting the values gives.
func TestLatenciesAreDecidedExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	values := make([]int64, 0, 300_045)
	parts := []*hist.Histogram{{}, {}, {}}
	record := func(v int64) {
		values = append(values, v)
		parts[r.IntN(len(parts))].Record(v)
	}
	for range 300_000 {
		record(msec + int64(r.ExpFloat64()*float64(msec)/4))
	}
	for i := range 45 {
		record(900*msec + int64(i))
	}
	slices.Sort(values)
	portions := []Portion{}
	for _, p := range parts {
		portions = append(portions, Portion{Broker: "b", Topic: "orders", Histogram: p})
	}
	fine := sure(result.Topic{Broker: "b", Topic: "orders", OpenLoop: true})
	for source, exact := range map[string]int64{
		"p(50)<1000":    values[(len(values)+1)/2-1],
		"med<1000":      values[(len(values)+1)/2-1],
		"p(99.9)<1000":  values[299_745-1],
		"p(99.99)<1000": values[300_015-1],
		"max<1000":      values[len(values)-1],
		"min<1000":      values[0],
	} {
		d := Latency(fine, condition(t, source), "publish_latency", portions)
		if !d.Judged || !d.Held || d.Value == nil || *d.Value < float64(exact)/msec || *d.Value > 1.001*float64(exact)/msec {
			t.Errorf("%s: %+v, want it to compare %v", source, d, float64(exact)/msec)
		}
	}
	for _, source := range []string{"max<50", "p(99.99)<50"} {
		if d := Latency(fine, condition(t, source), "publish_latency", portions); !d.Judged || d.Held {
			t.Errorf("%s: %+v", source, d)
		}
	}
}

func TestWhenALatencyCannotBeJudged(t *testing.T) {
	counts := counted(map[recording.Counter]int64{recording.Due: 12_000, recording.Sent: 12_000, recording.Confirmed: 12_000, recording.Received: 12_000})
	group := accounted(12_000, 12_000)
	group.Group = "workers"
	// topic has 12,000 latencies: p99 is 5 ms, p99.5 and what is beyond it 40 ms.
	topic := func(change func(t *result.Topic)) *result.Result {
		h := spread(11_940, 5*msec, 40*msec, 40*msec, 40*msec)
		t := result.Topic{
			Broker: "b", Topic: "orders", OpenLoop: true, Counts: counts,
			Trends: map[string]*hist.Histogram{recording.PublishLatency.String(): h, recording.E2ELatency.String(): h, recording.GeneratorLag.String(): spread(12_000, msec/10)},
			Groups: []result.Group{{Account: group, Trends: map[string]*hist.Histogram{recording.E2ELatency.String(): h}}},
		}
		if change != nil {
			change(&t)
		}
		return sure(t)
	}
	late := func(t *result.Topic) {
		t.Trends[recording.GeneratorLag.String()] = spread(11_940, msec/10, 30*msec, 30*msec, 30*msec)
	}
	failing := func(n int64) func(*result.Topic) {
		return func(t *result.Topic) { t.Errors = []result.ErrorCount{{Op: "send", Kind: "timeout", Count: n}} }
	}
	missing := func(t *result.Topic) {
		t.Groups[0].Drained, t.Groups[0].Received = 1, 11_999
		t.Trends[recording.E2ELatency.String()] = spread(11_999, msec)
		t.Groups[0].Trends = map[string]*hist.Histogram{recording.E2ELatency.String(): spread(11_999, msec)}
	}
	invalid := topic(nil)
	invalid.Verdict.Latencies = false
	both := topic(func(t *result.Topic) {
		t.ClosedLoop = true
		t.Trends[recording.PublishLatency.String()+recording.ClosedSuffix] = spread(12_000, msec)
	})
	for name, c := range map[string]struct {
		result  *result.Result
		source  string
		of      []Portion // what is asked for, if not all of the topic
		trend   recording.Trend
		Held    bool
		because string // "" where it is judged
	}{
		"sound":                         {result: topic(nil), source: "p(99)<50", Held: true},
		"sound and too slow":            {result: topic(nil), source: "p(99.9)<20"},
		"nothing of the kind":           {result: topic(nil), source: "p(99)<50", of: []Portion{}, because: "no samples"},
		"nothing measured":              {result: topic(nil), source: "max<50", of: []Portion{{Histogram: &hist.Histogram{}}}, because: "no samples"},
		"beyond the samples":            {result: topic(nil), source: "p(99.99)<50", because: "of 12000 samples 1 lie beyond p99.99"},
		"no median of few":              {result: topic(nil), source: "med<50", of: []Portion{{Histogram: spread(19, msec)}}, because: "of 19 samples 9 lie beyond p50"},
		"a mean of few":                 {result: topic(nil), source: "avg<50", of: []Portion{{Histogram: spread(1, msec)}}, Held: true},
		"a maximum of few":              {result: topic(nil), source: "max<50", of: []Portion{{Histogram: spread(1, msec)}}, Held: true},
		"ten of a topic beside another": {result: topic(nil), source: "p(99)<50", of: []Portion{{Broker: "b", Topic: "orders", Histogram: spread(10, msec)}}, because: "of 10 samples 0 lie"},
		"a run not to be believed":      {result: invalid, source: "p(99)<50", because: "the latencies of this run are not valid"},
		"not even its least":            {result: invalid, source: "min<50", because: "the latencies of this run are not valid"},
		"both loops": {
			result: both, source: "p(99)<50", because: "by the tag loop",
			of: []Portion{{Broker: "b", Topic: "orders", Histogram: spread(12_000, msec)}, {Broker: "b", Topic: "orders", Loop: recording.Closed, Histogram: spread(12_000, msec)}},
		},
		"one loop of both": {result: both, source: "p(99)<50", Held: true, of: []Portion{{Broker: "b", Topic: "orders", Loop: recording.Closed, Histogram: spread(12_000, msec)}}},
		// Lateness makes a latency greater: a limit that holds in spite of it holds, and one that does not may be the generator's fault.
		"late, and within the limit all the same": {result: topic(late), source: "p(99.9)<50", Held: true},
		"late, and beyond the limit":              {result: topic(late), source: "p(99.9)<20", because: "orders: up to 75 % of its p99.9, 40ms, is delay"},
		"late, and a lower limit":                 {result: topic(late), source: "p(99.9)>20", because: "is delay"},
		"late, and a lower limit that fails":      {result: topic(late), source: "p(99.9)>60", because: "is delay"},
		"late beyond what is asked":               {result: topic(late), source: "p(99)>20"},
		"late, and the maximum":                   {result: topic(late), source: "max<30", because: "75 % of its p99.9"},
		"late, and the minimum":                   {result: topic(late), source: "min>1", Held: true},
		"late, and between what is shown":         {result: topic(late), source: "p(99.7)<20", because: "75 % of its p99.7"},
		// What failed or never came is not in a distribution, and was slower than what is: that cannot make a limit hold.
		"failed sends":                            {result: topic(failing(6)), source: "p(99.9)<50", because: "0.050 % of the values, the greatest"},
		"failed sends, and beyond the limit":      {result: topic(failing(6)), source: "p(99.9)<20"},
		"failed sends, and a lower limit":         {result: topic(failing(6)), source: "p(99.9)>20", because: "0.050 %"},
		"failed sends, far below":                 {result: topic(failing(6)), source: "p(99)<50", Held: true},
		"a failed send, and the maximum":          {result: topic(failing(1)), source: "max<50", because: "0.0083 % of the values"},
		"a failed send, and the maximum too slow": {result: topic(failing(1)), source: "max<20"},
		"a failed send, and the mean":             {result: topic(failing(1)), source: "avg<50", Held: true},
		"one that nobody received": {
			result: topic(missing), source: "max<50", trend: recording.E2ELatency, because: "0.0083 %",
			of: []Portion{{Broker: "b", Topic: "orders", Group: "workers", Histogram: spread(11_999, msec)}},
		},
		"arrivals that never started": {
			result: invalid, source: "p(99)<50", of: []Portion{{Histogram: spread(1000, msec), Missing: 10}}, because: "0.99 % of the values",
		},
		"arrivals that waited": {result: invalid, source: "p(99)<50", of: []Portion{{Histogram: spread(1000, msec)}}, Held: true},
	} {
		t.Run(name, func(t *testing.T) {
			of := c.of
			if of == nil {
				name := recording.PublishLatency.String()
				of = []Portion{{Broker: "b", Topic: "orders", Histogram: c.result.Topics[0].Trends[name], Missing: Failed(&c.result.Topics[0], name)}}
			}
			d := Latency(c.result, condition(t, c.source), c.trend.String(), of)
			if d.Judged != (c.because == "") || d.Held != c.Held || !strings.Contains(d.Why, c.because) || c.because == "" && d.Why != "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// A failed send was slower than all that are in any of the distributions of the way that messages take.
func TestNoMaximumHoldsWhereASendFailed(t *testing.T) {
	for _, trend := range []recording.Trend{recording.PublishLatency, recording.PublishTime, recording.RequestLatency, recording.RequestTime, recording.E2ELatency, recording.E2ETime, recording.DeliveryWait} {
		for _, failed := range []int64{0, 1} {
			h, op := spread(12_000, msec), "send"
			if trend == recording.RequestLatency || trend == recording.RequestTime {
				op = "request"
			}
			group := accounted(12_000, 12_000)
			group.Group = "workers"
			topic := result.Topic{
				Broker: "b", Topic: "orders", OpenLoop: true, Trends: map[string]*hist.Histogram{trend.String(): h},
				Errors: []result.ErrorCount{{Op: op, Kind: "timeout", Count: failed}}, Counts: counted(map[recording.Counter]int64{recording.Sent: 12_000 + failed}),
			}
			portion := Portion{Broker: "b", Topic: "orders", Histogram: h, Missing: Failed(&topic, trend.String())}
			if trend.Consumers() {
				portion.Group = "workers"
				topic.Groups = []result.Group{{Account: group, Trends: map[string]*hist.Histogram{trend.String(): h}}}
			}
			if d := Latency(sure(topic), condition(t, "max<50"), trend.String(), []Portion{portion}); d.Held != (failed == 0) || d.Judged != d.Held {
				t.Errorf("%s with %d failed: %+v", trend, failed, d)
			}
		}
	}
}

// Of a portion, such as a scenario, as much is missing as failed there, however many others did not. What a group did not receive may all be of it.
func TestAPortionIsDecidedByWhatItLacks(t *testing.T) {
	all := spread(150_100, msec)
	group := accounted(150_150, 150_100)
	group.Group, group.Uncertain = "workers", 50
	r := sure(result.Topic{
		Broker: "b", Topic: "orders", OpenLoop: true, Trends: map[string]*hist.Histogram{"publish_latency": spread(150_150, msec), "e2e_latency": all},
		Errors: []result.ErrorCount{{Op: "send", Kind: "rejected", Count: 50}},
		Groups: []result.Group{{Account: group, Trends: map[string]*hist.Histogram{"e2e_latency": all}}},
	})
	rare := Portion{Broker: "b", Topic: "orders", Histogram: spread(100, msec)}
	failing := rare
	failing.Missing = 50
	consumed := rare
	consumed.Group = "workers"
	for name, c := range map[string]struct {
		trend   recording.Trend
		of      []Portion
		because string
	}{
		"none of its own":      {recording.PublishLatency, []Portion{rare}, ""},
		"a third":              {recording.PublishLatency, []Portion{failing}, "33 % of the values"},
		"among many":           {recording.PublishLatency, []Portion{failing, {Broker: "b", Topic: "orders", Histogram: spread(150_000, msec)}}, ""},
		"nothing else at all":  {recording.PublishLatency, []Portion{{Broker: "b", Topic: "orders", Histogram: &hist.Histogram{}, Missing: 9}}, "no samples"},
		"what nobody received": {recording.E2ELatency, []Portion{consumed, consumed}, "20 %"}, // which the test removed
	} {
		if d := Latency(r, condition(t, "p(80)<50"), c.trend.String(), c.of); d.Held != (c.because == "") || !strings.Contains(d.Why, c.because) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestWhenTheAccountCannotBeJudged(t *testing.T) {
	named := func(name string, expected, received uint64) account.Account {
		a := accounted(expected, received)
		a.Group = name
		return a
	}
	lost, uncertain := named("lost", 100, 95), named("uncertain", 100, 95)
	lost.Lost, uncertain.Uncertain = 5, 5
	copies := named("copies", 100, 100)
	copies.Duplicated, copies.Redelivered, copies.Reordered = 1, 2, 3
	foreign := named("foreign", 0, 0)
	foreign.Received, foreign.Unexpected = 7, 7
	groups := []result.Group{
		{Account: lost},
		{Account: uncertain},
		{Account: copies},
		{Account: named("fine", 100, 100)},
		{Account: named("idle", 0, 0)},
		{Account: foreign},
		{Account: named("dead", 0, 0), Strangers: 9},
	}
	fine := sure(result.Topic{Topic: "orders", Groups: groups})
	doubtful := sure(result.Topic{Topic: "orders", Groups: groups})
	doubtful.Verdict.Account = false
	for name, c := range map[string]struct {
		result        *result.Result
		count, source string
		groups        string
		value         float64
		Held          bool
		because       string // "" where it is judged
	}{
		"none lost":                  {count: "lost", source: "count==0", groups: "fine", Held: true},
		"some lost":                  {count: "lost", source: "count==0", groups: "lost", value: 5},
		"some lost, by the second":   {count: "lost", source: "rate==0.5", groups: "lost", value: 0.5, Held: true},
		"of several groups":          {count: "lost", source: "count==5", groups: "lost copies fine", value: 5, Held: true},
		"nothing consumed":           {count: "lost", source: "count==0", groups: "none", because: "no such group"},
		"nothing received":           {count: "lost", source: "count==0", groups: "idle", because: "orders, idle: no message was expected"},
		"nothing received by one":    {count: "lost", source: "count==0", groups: "fine idle", because: "orders, idle: no message was expected"},
		"nothing of this test":       {count: "lost", source: "count==0", groups: "foreign", because: "no message was expected"},
		"perhaps lost":               {count: "lost", source: "count==0", groups: "uncertain", because: "5 messages are uncertain"},
		"perhaps still there":        {count: "undelivered", source: "count==0", groups: "uncertain", because: "5 messages are uncertain"},
		"how many are uncertain":     {count: "uncertain", source: "count<6", groups: "uncertain", value: 5, Held: true},
		"none drained":               {count: "drained", source: "count==0", groups: "fine", Held: true},
		"duplicates":                 {count: "duplicated", source: "count==0", groups: "copies", value: 1},
		"redelivered":                {count: "redelivered", source: "count==0", groups: "copies", value: 2},
		"reordered":                  {count: "reordered", source: "count==0", groups: "copies", value: 3},
		"duplicates of strangers":    {count: "duplicated", source: "count==0", groups: "foreign", Held: true},
		"duplicates of nothing":      {count: "duplicated", source: "count==0", groups: "idle", because: "orders, idle: nothing was received"},
		"duplicates of dead letters": {count: "duplicated", source: "count==0", groups: "dead", because: "orders, dead: nothing was received"},
		"beside dead letters":        {count: "duplicated", source: "count==0", groups: "fine dead", Held: true},
		"some, beside dead letters":  {count: "duplicated", source: "count==0", groups: "dead copies", value: 1},
		"dead letters and nothing":   {count: "duplicated", source: "count==0", groups: "dead idle", because: "orders, idle: nothing was received"},
		"loss beside dead letters":   {count: "lost", source: "count==0", groups: "fine dead", because: "orders, dead: no message was expected"},
		"an account in doubt":        {result: doubtful, count: "lost", source: "count==0", groups: "fine", because: "the account of this run is not valid"},
		"no such count":              {count: "found", source: "count==0", groups: "fine", because: `no count "found"`},
	} {
		t.Run(name, func(t *testing.T) {
			of := c.result
			if of == nil {
				of = fine
			}
			d := Account(of, condition(t, c.source), c.count, func(_ *result.Topic, g *result.Group) bool {
				return slices.Contains(strings.Fields(c.groups), g.Group)
			}, 10)
			if d.Judged != (c.because == "") || d.Held != c.Held || !strings.Contains(d.Why, c.because) || c.because == "" && (d.Why != "" || *d.Value != c.value) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// Each threshold that could not be judged makes the run invalid by itself, and speaks against neither latencies nor account.
func TestAThresholdThatCouldNotBeJudgedIsAReason(t *testing.T) {
	r := sure()
	held := result.Threshold{Metric: "broker_sent", Source: "count>0", Decision: result.Decision{Held: true, Judged: true}}
	if AddThreshold(r, held); !r.Verdict.Valid || len(r.Verdict.Reasons) != 0 {
		t.Errorf("%+v", r.Verdict)
	}
	broken := result.Threshold{Metric: "broker_sent", Source: "count>9", Decision: result.Decision{Judged: true}}
	if AddThreshold(r, broken); !r.Verdict.Valid {
		t.Errorf("a threshold that is crossed does not make the numbers wrong: %+v", r.Verdict)
	}
	one := result.Threshold{Metric: "broker_e2e_latency{topic:a}", Source: "p(99)<50", Decision: Undecided("there are no samples")}
	other := result.Threshold{Metric: "broker_e2e_latency{topic:b}", Source: "p(99)<50", Decision: Undecided("there are no samples")}
	AddThreshold(r, one)
	AddThreshold(r, other)
	AddThreshold(r, one)
	v := r.Verdict
	if v.Valid || !v.Latencies || !v.Account || len(v.Reasons) != 2 || len(r.Thresholds) != 5 {
		t.Errorf("%+v, %+v", v, r.Thresholds)
	}
	for _, topic := range []string{"a", "b"} {
		if want := "threshold-not-judged metric=broker_e2e_latency{topic:" + topic + "} source=p(99)<50 detail=there_are_no_samples"; !reasontest.Has(v.Invalid(), want) {
			t.Errorf("no %q in %q", want, reasontest.Codes(v.Reasons))
		}
	}
}

func TestAccount_Unordered_ReorderedCannotBeJudged(t *testing.T) {
	a := account.Account{Unordered: true}
	a.Received = 10
	if _, doubt := CountOf(&a, "reordered"); doubt != NoOrder {
		t.Errorf("%q", doubt)
	}
	if _, doubt := CountOf(&a, "duplicated"); doubt != "" {
		t.Errorf("%q", doubt)
	}
}
