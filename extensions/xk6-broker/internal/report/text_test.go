package report

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

var update = flag.Bool("update", false, "write the golden files anew")

// evenly is a distribution of n values from 1 to n steps.
func evenly(n, step int64) *hist.Histogram {
	h := &hist.Histogram{}
	for i := int64(1); i <= n; i++ {
		h.Record(i * step)
	}
	return h
}

func sample() *result.Result {
	r := &result.Result{Version: result.Version, Name: "sample", Test: result.Test{Script: "orders.js", Scenarios: []result.Scenario{
		{Name: "consume", Executor: "constant-vus", Exec: "consume", VUs: 2, MaxVUs: 2, Options: map[string]any{"duration": "22s"}},
		{
			Name: "produce", Executor: "open-arrival-rate", Exec: "produce", VUs: 50, MaxVUs: 200,
			Options: map[string]any{
				"startRate": 0.0, "timeUnit": "1s", "arrivals": "poisson", "seed": 7.0, "startTime": "1s",
				"stages": []any{map[string]any{"target": 1000.0, "duration": "5s"}, map[string]any{"target": 1000.0, "duration": "1m"}},
			},
		},
	}}, Topics: []result.Topic{
		{
			Broker: "kafka://127.0.0.1:9092", Driver: "kafka", Topic: "orders", Confirm: "replicated", Proofs: []result.Proof{{Confirm: "replicated", How: "acks=all, 3 replicas, min.insync.replicas 2"}}, OpenLoop: true,
			Info: result.Server{Server: "kafka 4.3", Client: "franz-go v1.22.2", Nodes: 3},
			Options: result.Uses{
				"topic": {{"partitions": 6, "replicas": 3}}, "producer": {{"profile": "durable", "maxInFlight": 4096, "linger": "0s"}},
				"consumer": {{"group": "workers", "prefetch": 1000}},
			},
			Counts: map[string]int64{
				"due": 10000, "sent": 10000, "confirmed": 9990, "received": 9995, "acked": 9995, "blocked": 3, "corrupted": 1, "bytes_sent": 1_234_000,
			},
			Errors: []result.ErrorCount{{Op: "send", Kind: "timeout", Count: 10}},
			Trends: map[string]*hist.Histogram{
				"schedule_lag": evenly(10000, 20), "generator_lag": evenly(10000, 10), "publish_latency": evenly(9990, 1000),
				"publish_time": evenly(9990, 900), "e2e_latency": evenly(9988, 1100), "delivery_wait": evenly(9988, 100), "failed_latency": evenly(10, 3e9),
			},
			Groups: []result.Group{{Members: 2, Account: account.Account{
				Group: "workers", Lost: 1, Undelivered: 1,
				Tally: account.Tally{Expected: 9990, Received: 9988, Missing: 2, Redelivered: 7, Reordered: 2, Unexpected: 3},
			}}},
		},
		{
			Broker: "embedded:", Driver: "nats-jetstream", Topic: "events", Confirm: "replicated", Proofs: []result.Proof{{Confirm: "replicated", How: "acks=all, 3 replicas, min.insync.replicas 2"}},
			Info:   result.Server{Server: "nats-server 2.15.2", Embedded: true},
			Counts: map[string]int64{"due": 50, "sent": 50, "confirmed": 50},
			Trends: map[string]*hist.Histogram{"publish_latency": evenly(50, 5000), "publish_time": evenly(50, 5000)},
		},
	}}
	verdict.Judge(r, verdict.Circumstances{Dropped: 4})
	r.Checks = []result.Check{{Name: "a", Passes: 7}, {Name: "b", Passes: 1, Fails: 2}}
	one := 1.0
	r.Thresholds = []result.Threshold{
		{Metric: "broker_lost", Source: "count==0", Decision: result.Decision{Judged: true, Value: &one}},
		{Metric: "broker_e2e_latency", Source: "p(99)<5000", Decision: result.Decision{Held: true, Judged: true}},
		{Metric: "broker_e2e_latency{consumer_group:audit}", Source: "p(99)<50", Decision: verdict.Undecided("nothing was measured")},
	}
	return r
}

// many is a run of ten topics, of which one is late and one lost something.
func many() *result.Result {
	r := &result.Result{Version: result.Version, Name: "many"}
	for i := range int64(10) {
		t := result.Topic{
			Broker: "kafka://127.0.0.1:9092", Driver: "kafka", Topic: fmt.Sprintf("orders-%d", i+1), Confirm: "replicated", Proofs: []result.Proof{{Confirm: "replicated", How: "acks=all, 3 replicas, min.insync.replicas 2"}}, OpenLoop: true,
			Counts: map[string]int64{"due": 2000, "sent": 2000, "confirmed": 2000, "received": 2000},
			Trends: map[string]*hist.Histogram{
				"generator_lag": evenly(2000, 1000), "publish_latency": evenly(2000, 9000*(i+1)), "e2e_latency": evenly(2000, 10_000*(i+1)),
			},
			Groups: []result.Group{{Account: account.Account{Group: "workers", Tally: account.Tally{Expected: 2000, Received: 2000}}}},
		}
		switch i {
		case 3:
			t.Trends["generator_lag"] = evenly(2000, 20_000)
		case 7:
			t.Groups[0].Lost, t.Groups[0].Missing, t.Groups[0].Received = 5, 5, 1995
		case 9:
			t.Groups, t.Counts["received"] = nil, 0
			delete(t.Trends, "e2e_latency")
		}
		r.Topics = append(r.Topics, t)
	}
	verdict.Judge(r, verdict.Circumstances{})
	return r
}

// shown returns the text and the page of a result, each with single spaces.
func shown(t *testing.T, r *result.Result) (text, page string) {
	t.Helper()
	var a, b bytes.Buffer
	if err := errors.Join(Text(&a, r), HTML(&b, r)); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(a.String()), " "), b.String()
}

// Copies are not known of messages of other topics, such as dead letters.
func TestAccount_OnlyMessagesOfOtherTopics_CopiesNotKnown(t *testing.T) {
	r := many()
	r.Topics = r.Topics[:1]
	g := &r.Topics[0].Groups[0]
	g.Tally, g.Strangers = account.Tally{}, 10
	text, page := shown(t, r)
	if !strings.Contains(text, "duplicated –, reordered –, redelivered –") || !strings.Contains(text, "– nothing was received") {
		t.Error(text)
	}
	for _, name := range []string{"duplicated", "reordered", "redelivered"} {
		if !strings.Contains(page, `<td data-label="`+name+`" class="none" title="nothing was received">–</td>`) {
			t.Errorf("the page has a number of %s messages", name)
		}
	}
}

// A group that expected nothing, as on a wildcard, has lost nothing that could have been observed.
func TestAccount_NothingExpected_LossNotKnown(t *testing.T) {
	r := many()
	r.Topics = r.Topics[:1]
	r.Topics[0].Groups[0].Expected = 0
	text, page := shown(t, r)
	if strings.Contains(text, "lost 0") || !strings.Contains(text, "lost –, ") || !strings.Contains(text, "– no message was expected here") {
		t.Error(text)
	}
	if !strings.Contains(page, `<td data-label="lost" class="none" title="no message was expected here`) {
		t.Error("the page has a number of lost messages")
	}
	r = many()
	r.Topics[0].Groups[0].Expected = 0
	lost := topicsOf(r)
	at := slices.Index(lost.Heads, "lost")
	if a, b := lost.Rows[0].Cells[at], lost.Rows[1].Cells[at]; a.String() != "–" || b.String() != "0" {
		t.Errorf("%+v, %+v", a, b)
	}
}

func TestTextIsAsTheGoldenFile(t *testing.T) {
	asGolden(t, "text.golden", sample())
}

// Of many topics there is one table and a line for each.
func TestTextOfManyTopics(t *testing.T) {
	text := asGolden(t, "text-many.golden", many())
	if n := strings.Count(text, "\n"); n > 50 {
		t.Errorf("%d lines", n)
	}
}

func TestTextFitsATerminal(t *testing.T) {
	for _, r := range []*result.Result{sample(), many()} {
		var text bytes.Buffer
		if err := Text(&text, r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "\x00") {
			t.Errorf("%q", text.String())
		}
		for line := range strings.Lines(text.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > lineWidth {
				t.Errorf("%d characters: %s", n, line)
			}
		}
	}
}

// The page says of the run what the terminal says, and that nothing speaks against it only where nothing does.
func TestThePageHasTheTerminalsVerdict(t *testing.T) {
	const nothing = "No reason was found to distrust these numbers."
	for _, c := range []struct {
		verdict result.Verdict
		heading string
		nothing bool
	}{
		{result.Verdict{Valid: true}, "✓ valid", true},
		{result.Verdict{Valid: true, Reasons: []reason.Reason{reason.New(reason.EmbeddedBroker, reason.Note, nil)}}, "✓ valid", false},
		{result.Verdict{Valid: true, UpTo: 0.5, Reasons: []reason.Reason{reason.New(reason.PercentileNotReliable, reason.Note, reason.Values{"why": "machine"})}}, "✓ valid up to p50", false},
		{result.Verdict{Reasons: []reason.Reason{reason.New(reason.NothingReceived, reason.Invalid, nil)}}, "✗ NOT VALID", false},
	} {
		r := &result.Result{Verdict: c.verdict}
		var text, page bytes.Buffer
		if err := errors.Join(Text(&text, r), HTML(&page, r)); err != nil {
			t.Fatal(err)
		}
		_, word, _ := strings.Cut(c.heading, " ")
		if !strings.Contains(text.String(), "verdict: "+word+"\n") || !strings.Contains(page.String(), "<h2>"+c.heading+"</h2>") {
			t.Errorf("want %q in\n%s", c.heading, text.String())
		}
		if strings.Contains(page.String(), nothing) != c.nothing {
			t.Errorf("%+v: nothing speaks against it: want %v", c.verdict, c.nothing)
		}
	}
}

func asGolden(t *testing.T, name string, r *result.Result) string {
	t.Helper()
	var got bytes.Buffer
	if err := Text(&got, r); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("run the test with -update if this is as it should be:\n%s", got.Bytes())
	}
	return got.String()
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0s", 999: "999ns", 1000: "1µs", 99_949: "99.9µs", 99_960: "100µs", 1_234_567: "1.23ms", 12_345_678: "12.3ms",
		123_456_789: "123ms", 1_500_000_000: "1.5s", 3_600_000_000_000: "1h0m0s",
	} {
		if got := Duration(ns); got != want {
			t.Errorf("%d ns: %s, want %s", ns, got, want)
		}
	}
}
