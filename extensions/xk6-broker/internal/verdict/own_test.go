package verdict

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// A merge keeps the worst of the same reason of several processes, and none that the merged result has itself or decides anew.
func TestMerge_ReasonsOfProcesses_TheWorstOfEach(t *testing.T) {
	of := func(topic string, code reason.Code, level reason.Level, values facts) reason.Reason {
		return place{topic: topic}.reason(code, level, values)
	}
	failed := func(level reason.Level, count, all int) reason.Reason {
		return of("orders", reason.SendsFailed, level, reason.Values{"count": count, "total": all, "sends": "sends", "share": float64(count) / float64(all)})
	}
	late := func(latency string, upTo float64) reason.Reason {
		return of("orders", reason.PercentileNotReliable, reason.Note, reason.Values{"why": "machine", "latency": latency, "upTo": upTo})
	}
	part := func(name string, reasons ...reason.Reason) Part {
		p := Part{Ledger: &account.Ledger{}, Result: &result.Result{Name: name, Clock: &result.Clock{}, Verdict: result.Verdict{Valid: true, Latencies: true, Account: true}}}
		for _, r := range reasons {
			p.Result.Verdict.Add(r)
		}
		return p
	}
	parts := []Part{
		part("one", failed(reason.Invalid, 300, 100_000), late("publish latency", 0.99), of("orders", reason.ClosedLoop, reason.Note, reason.Values{"why": "all"}),
			of("orders", reason.Uncertain, reason.Invalid, reason.Values{"why": "no-backlog", "count": 9}), of("", reason.ThresholdNotJudged, reason.Invalid, nil)),
		part("two", failed(reason.Invalid, 200, 1000), late("publish latency", 0.95), late("end-to-end latency", 0.9)),
		part("three", of("orders", reason.PercentileNotReliable, reason.Invalid, reason.Values{"why": "missing", "latency": "end-to-end latency"})),
		part("killed", of("", reason.EndedEarly, reason.Invalid, reason.Values{"why": "interrupted"}), failed(reason.Note, 1, 10_000)),
	}
	parts[3].Ledger.Unfinished = true
	for name, c := range map[string]struct {
		whole []reason.Reason
		want  []string
	}{
		"the whole says nothing": {nil, []string{
			"invalid process-missing why=killed",
			"invalid sends-failed topic=orders count=200 processes=2 process=process_2_(two)",
			"note percentile-not-reliable latency=publish_latency upTo=0.95 processes=2 process=process_2_(two)",
			"note closed-loop processes=1 process=process_1_(one)",
			"note percentile-not-reliable latency=end-to-end_latency upTo=0.9 processes=1 process=process_2_(two)",
			"note sends-failed count=1 process=process_4_(killed)",
		}},
		"the whole says it": {[]reason.Reason{failed(reason.Invalid, 500, 200_000), late("publish latency", 0.99), late("end-to-end latency", 0.99)}, []string{
			"invalid process-missing why=killed",
			"note closed-loop processes=1 process=process_1_(one)",
		}},
	} {
		m := &merger{parts: parts, processes: len(parts), result: &result.Result{Recording: &recording.Recording{}, Clocks: []result.Clocks{{}}}}
		v := result.Verdict{Valid: true, Latencies: true, Account: true}
		for _, r := range c.whole {
			v.Add(r)
		}
		m.judge(&judge{Verdict: &v})
		got := v.Reasons[len(c.whole):]
		if len(got) != len(c.want) || v.Valid || v.Latencies || v.Account {
			t.Errorf("%s: %+v, %q, want %q", name, v, reasontest.Codes(got), c.want)
			continue
		}
		for i, want := range c.want {
			if !reasontest.Has(got[i:i+1], want) {
				t.Errorf("%s: %q, want %q", name, reasontest.Codes(got[i:i+1]), want)
			}
		}
	}
}
