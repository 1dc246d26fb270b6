package measure_test

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// topic had a rate of so many messages a second for four seconds.
func topic(name string, rate int64, latency int64, groups ...result.Group) result.Topic {
	h := &hist.Histogram{}
	h.RecordN(latency, 4*uint64(rate))
	t := result.Topic{
		Topic: name, OpenLoop: true, Groups: groups, Trends: map[string]*hist.Histogram{"e2e_latency": h},
		Counts: map[string]int64{"confirmed": 4 * rate, "received": 4 * rate, "bytes_sent": 400 * rate}, Errors: []result.ErrorCount{{Op: "send", Kind: "timeout", Count: 2}},
	}
	t.Spans = map[string]result.Span{"sent": {First: 0.5, Last: 4.5}, "confirmed": {First: 0.5, Last: 4.5}}
	return t
}

func group(lost uint64) result.Group {
	return result.Group{Account: account.Account{Group: "g", Tally: account.Tally{Expected: 100}, Lost: lost}}
}

// What is read of a run is that of its topic or, of several, of all.
func TestOfARun(t *testing.T) {
	one := &result.Result{Topics: []result.Topic{topic("a", 100, 1e6, group(3))}}
	two := &result.Result{Topics: []result.Topic{topic("a", 100, 1e6, group(3)), topic("b", 300, 9e6, group(4))}}
	replies := &result.Result{Topics: []result.Topic{topic("a", 100, 1e6, group(3)), topic("b", 300, 9e6)}} // from b nobody received
	for _, c := range []struct {
		name  string
		of    *result.Result
		value float64
	}{
		{"confirmed rate", one, 100},
		{"broker_e2e_latency max", one, 1e6},
		{"lost", one, 3},
		{"bytes_sent rate", one, 10_000},
		{"confirmed", one, 400},
		{"errors", one, 2},
		{"confirmed rate", two, 400},
		{"e2e_latency p50", two, 9e6},
		{"e2e_latency mean", two, 7e6},
		{"lost", two, 7},
		{"confirmed", two, 1600},
		{"errors", two, 4},
		{"lost", replies, 3},
	} {
		m, err := measure.Parse(c.name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.OfRun(c.of)
		if err != nil || v < 0.99*c.value || v > 1.01*c.value {
			t.Errorf("%s: %v, %v, want %v", c.name, v, err, c.value)
		}
	}
	unread := topic("a", 100, 1e6)
	delete(unread.Counts, "received")
	if v, err := measure.Rate("received").Of(&unread); err == nil || !strings.Contains(err.Error(), "nothing was received") {
		t.Errorf("received rate: %v, %v", v, err)
	}
	for name, want := range map[string]string{"publish_latency p50": "no publish_latency was measured", "e2e_latency p99.9": "400 samples do not support p99.9"} {
		m, err := measure.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := m.OfRun(one); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", name, v, err, want)
		}
	}
	if m, _ := measure.Parse("lost"); m.Label() == "lost" {
		if v, err := m.OfRun(&result.Result{}); err == nil {
			t.Error("of nothing:", v)
		}
		if v, err := m.OfRun(&result.Result{Topics: []result.Topic{topic("a", 100, 1e6)}}); err == nil || !strings.Contains(err.Error(), "nothing was received") {
			t.Error(v, err)
		}
	}
}

// A measure that is not there is named with those that are.
func TestMeasuresThatAreNotThere(t *testing.T) {
	for text, want := range map[string]string{
		"":                   `there is no ""`,
		"e2e_latency p99 x":  `"p99 x" is not`,
		"e2e_latncy p99":     `there is no "e2e_latncy p99"`,
		"e2e_latency":        `"" is not`,
		"confirmed p99":      `there is no "confirmed p99"`,
		"lost rate":          `there is no "lost rate"`,
		"due rate":           `there is no "due rate"`,
		"bytes_sent":         `there is no "bytes_sent"`,
		"e2e_latency p100":   `"p100" is not`,
		"publish_latency x9": `"x9" is not`,
	} {
		if m, err := measure.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, m, err, want)
		}
	}
	if _, err := measure.Parse("latency"); err == nil || !strings.Contains(err.Error(), "e2e_latency") || !strings.Contains(err.Error(), "redelivered") || !strings.Contains(err.Error(), "bytes_sent") {
		t.Error(err)
	}
}

func TestObjectives(t *testing.T) {
	for text, values := range map[string][2]float64{ // one that meets it, and one that does not
		"e2e_latency p99 < 20ms": {19e6, 20e6}, "e2e_latency p99 <= 20ms": {20e6, 21e6}, "confirmed rate > 5": {6, 5}, "confirmed rate >= 5": {5, 4},
		"lost == 0": {0, 1}, "received != 0": {1, 0},
	} {
		o, err := measure.ParseObjective(text)
		if err != nil || !o.Met(values[0]) || o.Met(values[1]) {
			t.Errorf("%s: %+v %v", text, o, err)
		}
	}
	for _, text := range []string{"lost", "lost = 0", "lost == 1s", "e2e_latency p99 < 20", "e2e_latency p99 < -1s", "lost ==", "== 0", "lost == 0 1", "lots == 0", "lost == NaN", "confirmed rate > -1"} {
		if o, err := measure.ParseObjective(text); err == nil || !strings.Contains(err.Error(), "condition") {
			t.Errorf("%q: %+v, %v", text, o, err)
		}
	}
}

func TestShow(t *testing.T) {
	for name, want := range map[string]string{"e2e_latency p99": "12.3ms", "confirmed rate": "12345678/s", "bytes_sent rate": "12345678 B/s", "lost": "12345678"} {
		m, err := measure.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Show(12345678); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
