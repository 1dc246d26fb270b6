package verdict

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const memory = "memory://one"

// packed is a distribution of n values.
func packed(value int64, n uint64) hist.Packed {
	h := &hist.Histogram{}
	h.RecordN(value, n)
	return h.Pack()
}

// interval is one of a process from one time to another, in seconds after [began], in which n messages were sent and received.
func interval(broker, phase string, from, to float64, n int64) *recording.Interval {
	at := func(seconds float64) int64 {
		return began.Add(time.Duration(seconds * float64(time.Second))).UnixNano()
	}
	key := recording.Key{Broker: broker, Driver: "memory", Topic: "orders", Phase: phase}
	send, receive := recording.Record{Key: key}, recording.Record{Key: key}
	receive.Group = "workers"
	send.Counts[recording.Due], send.Counts[recording.Sent], send.Counts[recording.Confirmed] = n, n, n
	receive.Counts[recording.Received], receive.Counts[recording.Acked], receive.Counts[recording.Requeued] = n, n-1, 1
	send.Latencies[recording.Open][recording.PublishLatency] = packed(int64(from+1), uint64(n))   //gosec:disable G115 -- a count
	receive.Latencies[recording.Open][recording.E2ELatency] = packed(int64(from+1000), uint64(n)) //gosec:disable G115 -- a count
	send.Spans[0] = recording.Span{First: at(from), Last: at(to)}
	send.Errors = recording.Errors{{Op: "send", Kind: "timeout"}: 1}
	receive.Outstanding = 7
	return &recording.Interval{
		From: at(from), To: at(to), Phase: phase, InFlight: 5, CPU: 0.2, Busiest: 0.3,
		Hiccups: map[string]hist.Packed{phase: packed(9, 1000)}, Records: []recording.Record{send, receive},
	}
}

func recorded(all ...*recording.Interval) *recording.Recording {
	rec := &recording.Recording{}
	for _, i := range all {
		rec.Add(i)
	}
	return rec
}

// skeleton is a result in which nothing is measured yet.
func skeleton(broker string, seconds float64) *result.Result {
	topic := func(name string) result.Topic {
		return result.Topic{
			Broker: broker, Driver: "memory", Topic: name, OpenLoop: true, Counts: map[string]int64{}, Proofs: []result.Proof{}, Options: result.Uses{},
			Groups: []result.Group{{Account: account.Account{Group: "workers"}}},
		}
	}
	return &result.Result{
		Version: result.Version, Name: "p", Run: 1, Instance: 1, Started: began, Seconds: seconds, Platform: &result.Platform{}, Environment: map[string]string{},
		Topics: []result.Topic{topic("orders"), topic("unused")},
	}
}

func encoded(t *testing.T, r *result.Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// addedUp checks that the phases have what the run has.
func addedUp(t *testing.T, r *result.Result) {
	t.Helper()
	for _, topic := range r.Topics {
		counts, errors, trends, received := map[string]int64{}, int64(0), map[string]*hist.Histogram{}, uint64(0)
		for _, w := range topic.Phases {
			for name, n := range w.Counts {
				counts[name] += n
			}
			for _, e := range w.Errors {
				errors += e.Count
			}
			for name, h := range w.Trends {
				trends[name] = hist.Merged(trends[name], h)
			}
			received += w.Groups[0].Received
		}
		for name, n := range topic.Counts {
			if counts[name] != n {
				t.Errorf("%s: %d %s in the phases, want %d", topic.Topic, counts[name], name, n)
			}
		}
		for name, h := range topic.Trends {
			if string(trends[name].Pack().HDR) != string(h.Pack().HDR) {
				t.Errorf("%s: %d of %s in the phases, want %d", topic.Topic, trends[name].Count(), name, h.Count())
			}
		}
		if want := errorsOfSend(topic); errors != want || int64(received) != topic.Counts["received"] { //gosec:disable G115 -- a count
			t.Errorf("%s: %d errors and %d received in the phases, want %d and %d", topic.Topic, errors, received, want, topic.Counts["received"])
		}
	}
}

func TestMeasure_PhaseComesAgain_PhasesAddUp(t *testing.T) {
	var all []*recording.Interval
	for n, phase := range []string{"", "a", "a", "b", "b", "a", "a"} {
		i := interval(memory, phase, float64(n), float64(n+1), 10)
		if phase == "" {
			i.Records = nil
		}
		all = append(all, i)
	}
	late := &all[3].Records[0] // of messages that were due in phase a and confirmed in phase b
	earlier := recording.Record{Key: late.Key, Latencies: late.Latencies}
	earlier.Phase, late.Latencies = "a", recording.Latencies{}
	all[3].Records = append(all[3].Records, earlier)
	r := skeleton(memory, 7)
	r.Measure(recorded(all...))
	addedUp(t, r)
	topic := r.Topics[0]
	if names := r.PhaseNames(); !slices.Equal(names, []string{"a", "b"}) || r.Phases[0].Seconds != 4 || len(r.Phases[0].Stretches) != 2 || r.Leading != "" {
		t.Errorf("%+v, %q leads", r.Phases, r.Leading)
	}
	if n := topic.Counts["sent"]; n != 60 || topic.Groups[0].Trends["e2e_latency"].Count() != 60 || topic.Spans["sent"] != (result.Span{First: 1, Last: 7}) {
		t.Errorf("sent %d, %v", n, topic.Spans)
	}
	a, b := topic.Phases["a"], topic.Phases["b"]
	if a.Counts["confirmed"] != 40 || b.Counts["confirmed"] != 20 || a.Trends["publish_latency"].Count() != 50 || b.Trends["publish_latency"].Count() != 10 {
		t.Errorf("%v, %v", a.Counts, b.Counts)
	}
	if g := a.Groups[0]; g.Received != 40 || g.Settled != 40 {
		t.Errorf("%+v", g)
	}
	if w := r.Topics[1].Phases["b"]; w.Counts == nil || len(w.Counts) != 0 || len(w.Groups) != 1 {
		t.Errorf("%+v", w)
	}
	for name, want := range map[string]float64{"a": 10, "b": 10} {
		if n, seconds := r.During(name).Topics[0].RateBasis("sent"); n/seconds != want {
			t.Errorf("%s: %v in %v s", name, n, seconds)
		}
	}
	if p := topic.History[1]; len(topic.History) != 7 || p.At != 2 || p.Seconds != 1 || p.Counts["sent"] != 10 || p.InFlight != 5 || p.Outstanding != 7 || p.ErrorKinds["timeout"] != 1 {
		t.Errorf("%d points, %+v", len(topic.History), p)
	}
	if r.Platform.Hiccups.Count() != 7000 || r.Phases[0].Hiccups.Count() != 4000 {
		t.Errorf("%d hiccups, %d of them in a", r.Platform.Hiccups.Count(), r.Phases[0].Hiccups.Count())
	}
	first := encoded(t, r)
	if r.Measure(r.Recording); encoded(t, r) != first {
		t.Error("measured again it is another result")
	}
}

// Messages that were due in phase a, and failed when phase b had begun, are missing from the latencies of a.
func TestMeasure_FailedAfterItsPhase_MissingFromIt(t *testing.T) {
	one, two := interval(memory, "a", 0, 1, 1000), interval(memory, "b", 1, 2, 1000)
	one.Records[0].Errors = nil
	one.Records[0].Counts[recording.Confirmed] -= 200
	two.Records[0].Errors = recording.Errors{{Op: "send", Kind: "timeout"}: 200}
	late := recording.Record{Key: one.Records[0].Key}
	late.Latencies[recording.Open][recording.FailedLatency] = packed(1e9, 200)
	two.Records = append(two.Records, late)
	r := skeleton(memory, 2)
	r.Measure(recorded(one, two))
	for _, trend := range []string{"publish_latency", "e2e_latency"} {
		for _, p := range r.Topics[0].Phases["a"].Percentiles[trend] {
			if p.Q >= 0.9 && p.Believed {
				t.Errorf("%s: %+v", trend, p)
			}
		}
	}
}

func TestMeasure_NoPhaseBegan_NoPhases(t *testing.T) {
	r := skeleton(memory, 2)
	r.Measure(recorded(interval(memory, "", 0, 1, 10), interval(memory, "", 1, 2, 10)))
	if r.Phases != nil || r.Topics[0].Phases != nil || r.Topics[0].Counts["sent"] != 20 {
		t.Errorf("%+v, %v", r.Phases, r.Topics[0].Counts)
	}
}

func TestMeasure_ClosedLoopOnly_PlainNames(t *testing.T) {
	i := interval(memory, "", 0, 1, 10)
	for k := range i.Records {
		l := &i.Records[k].Latencies
		l[recording.Open], l[recording.Closed] = l[recording.Closed], l[recording.Open]
	}
	for openLoop, want := range map[bool]string{false: "publish_latency", true: "publish_latency_closed"} {
		r := skeleton(memory, 1)
		r.Topics[0].OpenLoop = openLoop
		r.Measure(recorded(i))
		if topic := r.Topics[0]; topic.Trends[want].Count() != 10 || len(topic.OverTime[want]) != 1 || topic.OpenLoop != openLoop {
			t.Errorf("%v: %v", openLoop, topic.OverTime)
		}
	}
}

// processes are parts of one test, each with its recording and its own address of the broker.
func processes(recordings ...*recording.Recording) (parts []Part) {
	for n, rec := range recordings {
		all := rec.Intervals()
		r := skeleton(all[0].Records[0].Broker, 0)
		r.Name, r.Instance, r.Started = []string{"one", "two"}[n], uint32(n+1), time.Unix(0, all[0].From).UTC() //gosec:disable G115 -- a small number
		r.Seconds = time.Duration(all[len(all)-1].To - all[0].From).Seconds()
		r.Measure(rec)
		parts = append(parts, Part{Result: r, Ledger: &account.Ledger{Run: 1, Instance: r.Instance}, Recording: rec})
	}
	return parts
}

// The first process has intervals of a second, the second of four, and begins two seconds later.
func TestMerge_IntervalsOfDifferentLengths_HistoriesAddUp(t *testing.T) {
	var one, two []*recording.Interval
	for n := range 12 {
		one = append(one, interval(memory, "", float64(n), float64(n+1), 10))
	}
	for n := range 3 {
		two = append(two, interval("memory://two", "", float64(2+4*n), float64(6+4*n), 40))
	}
	merged, err := Merge(processes(recorded(one...), recorded(two...)), Siblings{})
	if err != nil {
		t.Fatal(err)
	}
	topic := merged.Topics[0]
	var ends []float64
	var sent int64
	var values uint64
	for _, p := range topic.History {
		ends = append(ends, p.At)
		sent += p.Counts["sent"]
	}
	for _, s := range topic.OverTime["publish_latency"] {
		values += s.Count
	}
	if len(merged.Topics) != 2 || !slices.Equal(ends, []float64{4, 8, 12, 16}) || sent != 240 || values != 240 || topic.Counts["sent"] != 240 {
		t.Errorf("%d topics, intervals to %v, sent %d, %d latencies", len(merged.Topics), ends, sent, values)
	}
	if p := topic.History[1]; p.Seconds != 4 || p.InFlight != 10 || p.Outstanding != 14 || p.Busiest != 0.3 {
		t.Errorf("%+v", p)
	}
	if n, seconds := topic.RateBasis("sent"); n != 240 || math.Abs(seconds-14) > 1e-9 {
		t.Errorf("%v in %v s", n, seconds)
	}
}

func TestMerge_PhasesOfProcesses_Sums(t *testing.T) {
	// each process is two seconds in a, two in b and two in a again, the second begins later
	of := func(broker string, from float64, n int64, phases ...string) *recording.Recording {
		var all []*recording.Interval
		for k, phase := range phases {
			all = append(all, interval(broker, phase, from+float64(k), from+float64(k+1), n))
		}
		return recorded(all...)
	}
	for name, c := range map[string]struct {
		later  float64
		phases []string
		killed bool
		want   string // the reason, if any
	}{
		"together":          {0.5, []string{"a", "a", "b", "b", "a", "a"}, false, ""},
		"apart":             {2, []string{"a", "a", "b", "b", "a", "a"}, false, "invalid processes-differ why=phase"},
		"not again":         {0.5, []string{"a", "a", "b", "b"}, false, "invalid processes-differ why=phase"},
		"killed":            {0.5, []string{"a", "a", "b", "b"}, true, ""},
		"different names":   {0.5, []string{"a", "a", "c", "c", "a", "a"}, false, "invalid processes-differ why=phase"},
		"one without phase": {0.5, []string{"", "", "", "", "", ""}, false, "invalid processes-differ why=phase"},
	} {
		parts := processes(of(memory, 0, 100, "a", "a", "b", "b", "a", "a"), of("memory://two", c.later, 400, c.phases...))
		parts[1].Ledger.Unfinished = c.killed
		merged, err := Merge(parts, Siblings{})
		if err != nil {
			t.Fatal(err)
		}
		if has := reasontest.Has(merged.Verdict.Reasons, "processes-differ"); has != (c.want != "") || has && !reasontest.Has(merged.Verdict.Reasons, c.want) {
			t.Errorf("%s: %q, want %q", name, reasontest.Codes(merged.Verdict.Reasons), c.want)
		}
		topic, want := merged.Topics[0], int64(600+400*len(c.phases))
		if topic.Counts["sent"] != want || topic.Trends["publish_latency"].Count() != uint64(want) { //gosec:disable G115 -- a count
			t.Errorf("%s: sent %d, want %d", name, topic.Counts["sent"], want)
		}
		addedUp(t, merged)
		if p := merged.Phases[0]; c.want == "" && (p.Processes != 2 || p.Seconds != 4) {
			t.Errorf("%s: %+v", name, p)
		}
		if name != "together" {
			continue
		}
		for phase, rate := range map[string]float64{"a": 500, "b": 500} { // the sum of both
			if n, seconds := merged.During(phase).Topics[0].RateBasis("sent"); math.Abs(n/seconds-rate) > 1e-6 {
				t.Errorf("%s: %v in %v s, want %v/s", phase, n, seconds, rate)
			}
		}
	}
}

func TestCut_NearestInstants_FiltersTheRecording(t *testing.T) {
	var all []*recording.Interval
	for n := range 20 {
		all = append(all, interval(memory, []string{"a", "b"}[n/10], float64(n), float64(n+1), int64(n)))
	}
	rec := recorded(all...)
	sums := map[string]*hist.Histogram{}
	var sent int64
	for _, part := range []struct {
		from, to float64
		name     string
		sent     int64
	}{{0, 7.8, "0.0 s to 8.0 s", 28}, {8.3, 12, "8.0 s to 12.0 s", 38}, {12, 99, "12.0 s to 20.0 s", 124}} {
		r := skeleton(memory, 20)
		r.Measure(rec)
		if err := r.Cut(rec, part.from, part.to); err != nil {
			t.Fatal(err)
		}
		w := r.Topics[0].Phases[part.name]
		if r.Leading != part.name || w.Counts["sent"] != part.sent || w.Groups[0].Received != uint64(part.sent) { //gosec:disable G115 -- a count
			t.Errorf("%s: %+v", r.Leading, w)
		}
		if n, seconds := r.Led().Topics[0].RateBasis("sent"); int64(n) != part.sent || seconds != r.Phase(part.name).Seconds {
			t.Errorf("%s: %v in %v s", part.name, n, seconds)
		}
		for name, h := range w.Trends {
			sums[name] = hist.Merged(sums[name], h)
		}
		sent += w.Counts["sent"]
	}
	r := skeleton(memory, 20)
	r.Measure(rec)
	for name, h := range r.Topics[0].Trends {
		if string(sums[name].Pack().HDR) != string(h.Pack().HDR) {
			t.Errorf("%s: the parts do not add up", name)
		}
	}
	if sent != 190 {
		t.Errorf("sent %d", sent)
	}
	if err := r.Cut(rec, 10.1, 10.3); err == nil {
		t.Error("a part without an interval was cut")
	}
}

// The recording of 100 topics is as large as it may be.
func BenchmarkMeasure(b *testing.B) {
	topics := make([]result.Topic, 100)
	for i := range topics {
		topics[i] = skeleton(memory, 1200).Topics[0]
		topics[i].Topic = "orders-" + string(rune('a'+i))
	}
	h := &hist.Histogram{}
	for n := range int64(200) {
		h.RecordN(n*n*10_000, 1)
	}
	packed, rec := h.Pack(), &recording.Recording{}
	for n := range 167 { // more would be joined
		i := interval(memory, "", float64(n), float64(n+1), 10)
		var records []recording.Record
		for k := range topics {
			for _, r := range i.Records {
				r.Topic = topics[k].Topic
				r.Latencies = recording.Latencies{}
				for trend := range 4 {
					r.Latencies[recording.Open][trend] = packed
				}
				records = append(records, r)
			}
		}
		i.Records = records
		rec.Add(i)
	}
	for b.Loop() {
		r := skeleton(memory, 1200)
		r.Topics = slices.Clone(topics)
		r.Measure(rec)
	}
}

func errorsOfSend(t result.Topic) (n int64) { return topic{Topic: &t}.errorsOf("send") }
