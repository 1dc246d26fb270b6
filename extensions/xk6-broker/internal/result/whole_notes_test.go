package result

import (
	"slices"
	"testing"
)

// What several processes say of one topic is said once, as it is where it is worst, and not at all where the whole says it.
func TestProcessesSayTheSameOnce(t *testing.T) {
	late := func(upTo float64, share string) []Belief {
		return []Belief{
			{"orders", "publish latency", upTo, share + " % of its p99 (29ms)" + isLateness + "the load generator (6ms); lower the rate"},
			{"orders", "end-to-end latency", upTo, share + " % of its p99 (32ms)" + isLateness + "the load generator (6ms); lower the rate"},
			{"orders", "request latency", 0.99, ""},
		}
	}
	const waited = "orders, workers: half of the messages waited longer than "
	part := func(name string, beliefs []Belief, notes ...string) Part {
		return Part{Ledger: &Ledger{}, Result: &Result{Name: name, Verdict: Verdict{Valid: true, Latencies: true, Account: true, Beliefs: beliefs, Notes: notes}}}
	}
	parts := []Part{
		part("one", late(0.99, "20"), "orders: "+owesLittle+"2ms, is 9.0 % of the p50 of publish latency", waited+"900ms in the buffer", "orders-1: 5 were foreign",
			"orders: closed loop", "orders: 7 were sent by others: "+mergeTells),
		part("two", late(0.95, "30"), "orders: "+owesLittle+"2ms, is 50 % of the p50, 12 % of the p90 of publish latency", waited+"1m2.5s in the buffer",
			"orders-2: 6 were foreign"),
		part("three", nil, "orders: "+owesLittle+"2ms, is 12 % of the p50 of publish latency", "orders: 3 sends failed"),
	}
	const last = "of 3 processes: "
	for name, c := range map[string]struct {
		whole Verdict
		want  []string
	}{
		"the whole says nothing": {
			want: []string{
				"3 processes, worst in process 2 (two): orders: " + owesLittle + "2ms, is 50 % of the p50, 12 % of the p90 of publish latency",
				"2 processes, worst in process 2 (two): " + waited + "1m2.5s in the buffer",
				"process 1 (one): orders-1: 5 were foreign",
				"process 1 (one): orders: closed loop",
				"process 2 (two): orders-2: 6 were foreign",
				"process 3 (three): orders: 3 sends failed",
				"2 processes, worst in process 2 (two): orders: publish latency and end-to-end latency can be believed up to p95: 30 % of its p99 (29ms) and " +
					"30 % of its p99 (32ms) are lateness of the load generator (6ms); lower the rate",
			},
		},
		"the whole says it": {
			whole: Verdict{Beliefs: late(0.9, "40")[:1], Notes: []string{"orders: " + owesLittle + "2ms, is 15 % of the p50", "orders: 3 sends failed", "orders: closed loop"}},
			want: []string{
				"2 processes, worst in process 2 (two): " + waited + "1m2.5s in the buffer",
				"process 1 (one): orders-1: 5 were foreign",
				"process 2 (two): orders-2: 6 were foreign",
				"2 processes, worst in process 2 (two): orders: end-to-end latency can be believed up to p95: 30 % of its p99 (32ms) is lateness of the load " +
					"generator (6ms); lower the rate",
			},
		},
		"the whole can be believed further": {
			whole: Verdict{Beliefs: late(0.99, "11"), Notes: parts[1].Result.Verdict.Notes},
			want: []string{
				"process 1 (one): orders-1: 5 were foreign",
				"process 1 (one): orders: closed loop",
				"process 3 (three): orders: 3 sends failed",
				"2 processes, worst in process 2 (two): orders: publish latency and end-to-end latency can be believed up to p95: 30 % of its p99 (29ms) and " +
					"30 % of its p99 (32ms) are lateness of the load generator (6ms); lower the rate",
			},
		},
	} {
		own := len(c.whole.Notes)
		m := &merger{parts: parts, processes: len(parts), result: &Result{Verdict: c.whole}}
		m.verdict()
		got := m.result.Verdict.Notes[own:]
		if n := len(got) - 1; n < 0 || got[n][:len(last)] != last || !slices.Equal(got[:n], c.want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

// Why several processes are not valid, in words that differ in their numbers alone, is said once, and not at all where the whole says it; what speaks
// against the latencies of one speaks against those of the whole.
func TestProcessesGiveAReasonOnce(t *testing.T) {
	part := func(name string, latencies bool, reasons ...string) Part {
		return Part{Ledger: &Ledger{}, Result: &Result{
			Name: name, Thresholds: []Threshold{{Metric: "broker_lost", Source: "count==0"}}, Verdict: Verdict{Latencies: latencies, Account: true, Reasons: reasons},
		}}
	}
	const late, dropped = "orders: publish latency cannot be believed: 70 % of its p50 is lateness", "k6 dropped 5 iterations"
	m := &merger{processes: 3, result: &Result{Verdict: Verdict{Latencies: true, Account: true, Reasons: []string{"orders: 3 sends failed"}}}, parts: []Part{
		part("one", false, late, "orders: 1 sends failed", "orders: 9 messages are elsewhere: "+mergeTells),
		part("two", false, "orders: publish latency cannot be believed: 90 % of its p50 is lateness"),
		part("three", true, dropped),
	}}
	m.verdict()
	v := m.result.Verdict
	want := []string{
		"orders: 3 sends failed", "2 processes, worst in process 2 (two): orders: publish latency cannot be believed: 90 % of its p50 is lateness",
		"process 3 (three): " + dropped,
	}
	if !slices.Equal(v.Reasons, want) || v.Valid || v.Latencies || !v.Account {
		t.Errorf("%+v\nwant %q", v, want)
	}
}
