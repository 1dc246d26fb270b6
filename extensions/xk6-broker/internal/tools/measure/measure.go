// Package measure reads numbers from results by name: "e2e_latency p99", "confirmed rate", "lost".
// Comparisons, conditions and studies share its vocabulary.
package measure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// Measure is a number that can be read from a topic of a run, or from the run.
type Measure struct {
	Name, Stat string // "e2e_latency", "p99"; "lost", ""
	Unit       string // "ns", "/s", "B/s" or "", a count
	read       func(*result.Topic) (float64, error)
	reach      *verdict.Condition // of a latency: the part of the distribution that it depends on
}

// The counters by name: per second, as counts, and the ones that are 0 if all is well.
var (
	Rates  = []string{"confirmed", "received", "sent", "bytes_sent", "bytes_received"}
	Counts = []string{"due", "sent", "confirmed", "received"}
	Flaws  = []string{"lost", "undelivered", "duplicated", "reordered", "redelivered", "corrupted", "errors"}
)

// Parse returns the measure of a name. A latency may have the prefix "broker_".
func Parse(text string) (Measure, error) {
	name, stat, _ := strings.Cut(strings.TrimPrefix(text, "broker_"), " ")
	_, latency := recording.TrendNamed(name)
	switch {
	case latency:
		return Latency(name, stat)
	case stat == "rate" && slices.Contains(Rates, name):
		return Rate(name), nil
	case stat == "" && (slices.Contains(Counts, name) || slices.Contains(Flaws, name)):
		return Count(name), nil
	}
	return Measure{}, fmt.Errorf("there is no %q: %s", text, vocabulary())
}

// vocabulary describes all measures.
func vocabulary() string {
	var latencies []string
	for t := range recording.Trend(recording.NumTrends) {
		latencies = append(latencies, t.String())
	}
	list := func(names []string) string { return strings.Join(names, ", ") }
	return fmt.Sprintf(`write a latency (%s) with p99 or another percentile, max or mean; a rate (%s) as "sent rate"; `+
		"or a count (%s)", list(latencies), list(Rates), list(slices.Concat(Counts, Flaws)))
}

// Label is the measure's name.
func (m Measure) Label() string { return strings.TrimSpace(m.Name + " " + m.Stat) }

// Show returns a value of the measure with its unit.
func (m Measure) Show(v float64) string {
	switch m.Unit {
	case "ns":
		return report.Duration(int64(v))
	case "":
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return report.Rate(v) + strings.Replace(m.Unit, "B", " B", 1)
}

// Of reads the measure of a topic. The error is the reason why it is not known.
func (m Measure) Of(t *result.Topic) (float64, error) { return m.read(t) }

// OfRun reads the measure of a run in its leading phase. Of several topics, counts are added up,
// distributions are pooled, and a rate is of all together.
func (m Measure) OfRun(r *result.Result) (float64, error) {
	r = r.Led()
	switch {
	case len(r.Topics) == 0:
		return 0, errors.New("nothing was measured")
	case len(r.Topics) == 1:
		return m.read(&r.Topics[0])
	case m.Unit != "":
		total := verdict.Total(r)
		return m.read(&total)
	}
	reason, sum, found := error(nil), 0.0, false
	for i := range r.Topics {
		v, err := m.read(&r.Topics[i])
		switch {
		case err == nil:
			sum, found = sum+v, true
		case len(r.Topics[i].Groups) > 0:
			return 0, fmt.Errorf("%s: %w", r.Topics[i].Topic, err)
		default: // the topic has no consumers: the others have the sum
			reason = err
		}
	}
	if !found {
		return 0, reason
	}
	return sum, nil
}

// Doubt returns why the value of a topic may be less than the truth, and why more; "" if it cannot.
func (m Measure) Doubt(t *result.Topic) (low, high string) {
	if _, err := m.read(t); err != nil || m.reach == nil {
		return "", ""
	}
	return verdict.Doubts(t, *m.reach, m.Name)
}

// DoubtOfRun is Doubt of the number of OfRun: the first of any topic.
func (m Measure) DoubtOfRun(r *result.Result) (low, high string) {
	r = r.Led()
	for i := range r.Topics {
		below, above := m.Doubt(&r.Topics[i])
		low, high = cmp.Or(low, below), cmp.Or(high, above)
	}
	return low, high
}

// Rate is a counter per second.
func Rate(name string) Measure {
	subject, bytes := strings.CutPrefix(name, "bytes_")
	m := Measure{Name: name, Stat: "rate", Unit: "/s"}
	if bytes {
		m.Unit = "B/s"
	}
	m.read = func(t *result.Topic) (float64, error) {
		n, seconds := t.RateBasis(name)
		switch {
		case n == 0:
			return 0, fmt.Errorf("nothing was %s", subject)
		case seconds <= 0:
			return 0, fmt.Errorf("messages were %s for too short a time for a rate", subject)
		}
		return n / seconds, nil
	}
	return m
}

// Count is a number of messages, or of errors.
func Count(name string) Measure {
	return Measure{Name: name, read: func(t *result.Topic) (float64, error) {
		switch {
		case name == "errors":
			var n int64
			for _, e := range t.Errors {
				n += e.Count
			}
			return float64(n), nil
		case name == "corrupted" && t.Counts["received"] == 0:
			return 0, errors.New("nothing was received, so corrupted messages are not known")
		case name == "corrupted", slices.Contains(Counts, name):
			return float64(t.Counts[name]), nil
		}
		return accountOf(t, name)
	}}
}

// accountOf returns a count of the account of all groups, or the reason why it is not known.
func accountOf(t *result.Topic, name string) (sum float64, err error) {
	if len(t.Groups) == 0 {
		return 0, fmt.Errorf("nothing was received, so %s messages are not known", name)
	}
	for i := range t.Groups {
		n, doubt := verdict.CountOf(&t.Groups[i].Account, name)
		if doubt != "" {
			return 0, errors.New(doubt)
		}
		sum += float64(n)
	}
	for _, c := range []recording.Counter{recording.Aliased, recording.Unaccounted} {
		if n := t.Counts[c.String()]; n > 0 && !(t.OnlySends && c == recording.Unaccounted) {
			return 0, fmt.Errorf("%d messages are in no account (%s)", n, c)
		}
	}
	return sum, nil
}

// Latency is a percentile, the maximum or the mean of a trend, in ns.
func Latency(trend, stat string) (Measure, error) {
	method := map[string]string{"max": "max", "mean": "avg"}[stat]
	if percent, ok := strings.CutPrefix(stat, "p"); ok {
		method = "p(" + percent + ")"
	}
	c, err := verdict.ParseCondition(method + "<0")
	if err != nil || strings.HasPrefix(stat, "p") && c.Method != "p" {
		return Measure{}, fmt.Errorf("%s: %q is not p50, p99 or another percentile, max or mean", trend, stat)
	}
	return Measure{Name: trend, Stat: stat, Unit: "ns", reach: &c, read: func(t *result.Topic) (float64, error) {
		h := t.Trends[trend]
		switch {
		case h == nil || h.Count() == 0:
			return 0, fmt.Errorf("no %s was measured", trend)
		case c.Method == "max":
			return float64(h.Max()), nil
		case c.Method == "avg":
			return h.Mean(), nil
		case !h.Supported(c.Quantile):
			return 0, fmt.Errorf("%d samples do not support %s: at least 10 must lie beyond it", h.Count(), stat)
		}
		return float64(h.Quantile(c.Quantile)), nil
	}}, nil
}
