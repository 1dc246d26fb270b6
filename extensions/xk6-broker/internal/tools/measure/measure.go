// Package measure reads numbers from results by the names that people give them: "e2e_latency p99", "confirmed rate", "lost". Comparisons,
// conditions and studies have one vocabulary.
package measure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// Measure is a number that can be read from a topic of a run, or from the run as a whole.
type Measure struct {
	Name, Stat string // "e2e_latency", "p99"; "lost", ""
	Unit       string // "ns", "/s", "B/s" or "", a count
	read       func(*result.Topic) (float64, error)
	reach      *verdict.Condition // of a latency: how far into the distribution it looks
}

// The counters that can be read: by second, as they are, and those that should be 0.
var (
	Rates  = []string{"confirmed", "received", "sent", "bytes_sent", "bytes_received"}
	Counts = []string{"due", "sent", "confirmed", "received"}
	Flaws  = []string{"lost", "undelivered", "duplicated", "reordered", "redelivered", "corrupted", "errors"}
)

// Parse understands the name of a measure, a latency's with the prefix "broker_" too. The error says what there is.
func Parse(text string) (Measure, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > 2 {
		return Measure{}, fmt.Errorf("%q is not understood: %s", text, Known())
	}
	name, stat := strings.TrimPrefix(fields[0], "broker_"), ""
	if len(fields) == 2 {
		stat = fields[1]
	}
	_, latency := recording.TrendNamed(name)
	switch {
	case latency:
		return Latency(name, stat)
	case stat == "rate" && slices.Contains(Rates, name):
		return Rate(name), nil
	case stat == "" && (slices.Contains(Counts, name) || slices.Contains(Flaws, name)):
		return Count(name), nil
	case slices.Contains(Rates, name):
		return Measure{}, fmt.Errorf("%s has no %q: write %q: %s", name, stat, name+" rate", Known())
	case slices.Contains(Counts, name), slices.Contains(Flaws, name):
		return Measure{}, fmt.Errorf("%s has no %q: write %q: %s", name, stat, name, Known())
	}
	return Measure{}, fmt.Errorf("there is no %q: %s", name, Known())
}

// Known says what can be read.
func Known() string {
	var latencies []string
	for t := range recording.Trend(recording.NumTrends) {
		latencies = append(latencies, t.String())
	}
	return fmt.Sprintf("there is a latency (%s) with p50, p99, p99.9 or another percentile, max or mean; %s, each with the word rate; and the counts %s",
		strings.Join(latencies, ", "), strings.Join(Rates, ", "), strings.Join(slices.Concat(Counts, Flaws), ", "))
}

// Label is the measure's name.
func (m Measure) Label() string { return strings.TrimSpace(m.Name + " " + m.Stat) }

// Show writes a value of the measure with its unit.
func (m Measure) Show(v float64) string {
	switch m.Unit {
	case "ns":
		return report.Duration(int64(v))
	case "/s":
		return number(v) + "/s"
	case "B/s":
		return bytes(v) + "/s"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// number writes a number with four significant digits, or with all of those that a great one has before the point.
func number(v float64) string {
	if v < 10_000 {
		return fmt.Sprintf("%.4g", v)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// bytes writes a number of bytes with three significant digits.
func bytes(v float64) string {
	for _, of := range []struct {
		scale float64
		name  string
	}{{1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}} {
		if v >= of.scale {
			return fmt.Sprintf("%.3g", v/of.scale) + of.name
		}
	}
	return fmt.Sprintf("%.3g B", v)
}

// Of reads the measure of a topic. The error says why it is not known.
func (m Measure) Of(t *result.Topic) (float64, error) { return m.read(t) }

// OfRun reads the measure of a run as it was in the phase that leads. Of several topics counts are added up, of those that have them, distributions are
// pooled, and a rate is of all together, in the time from the first message of any to the last.
func (m Measure) OfRun(r *result.Result) (float64, error) {
	r = r.Led()
	switch {
	case len(r.Topics) == 0:
		return 0, errors.New("nothing was measured")
	case len(r.Topics) == 1:
		return m.read(&r.Topics[0])
	case m.Unit == "ns", m.Stat == "rate":
		total := verdict.Total(r)
		return m.read(&total)
	}
	sum, known, reason := 0.0, false, error(nil)
	for i := range r.Topics {
		v, err := m.read(&r.Topics[i])
		if err != nil {
			reason = cmp.Or(reason, err)
			if !absent(&r.Topics[i]) {
				return 0, fmt.Errorf("%s: %w", r.Topics[i].Topic, err)
			}
			continue
		}
		sum, known = sum+v, true
	}
	if !known {
		return 0, reason
	}
	return sum, nil
}

// absent reports whether a topic has nothing that the measure could be of: nobody received from it. That is no reason for a sum not to be known.
func absent(t *result.Topic) bool { return len(t.Groups) == 0 }

// Doubt says why the value of a topic may be less than the truth, and why more; "" where it cannot.
func (m Measure) Doubt(t *result.Topic) (low, high string) {
	if m.reach == nil || t.Trends[m.Name] == nil {
		return "", ""
	}
	return verdict.Doubts(t, *m.reach, m.Name)
}

// DoubtOfRun is Doubt of what OfRun reads: the first of any topic.
func (m Measure) DoubtOfRun(r *result.Result) (low, high string) {
	r = r.Led()
	for i := range r.Topics {
		if _, err := m.read(&r.Topics[i]); err != nil {
			continue
		}
		below, above := m.Doubt(&r.Topics[i])
		low, high = cmp.Or(low, below), cmp.Or(high, above)
	}
	return low, high
}

// Rate is a counter per second.
func Rate(name string) Measure {
	unit := "/s"
	if strings.HasPrefix(name, "bytes") {
		unit = "B/s"
	}
	return Measure{Name: name, Stat: "rate", Unit: unit, read: func(t *result.Topic) (float64, error) { return perSecond(name, t) }}
}

func perSecond(name string, of *result.Topic) (float64, error) {
	n, seconds := of.RateBasis(name)
	switch {
	case n == 0:
		return 0, fmt.Errorf("nothing was %s", strings.TrimPrefix(name, "bytes_"))
	case seconds <= 0:
		return 0, fmt.Errorf("for how long messages were %s is not known well enough for a rate", strings.TrimPrefix(name, "bytes_"))
	}
	return n / seconds, nil
}

// Count is a number of messages, or of errors.
func Count(name string) Measure {
	return Measure{Name: name, read: func(t *result.Topic) (float64, error) {
		switch name {
		case "errors":
			var n int64
			for _, e := range t.Errors {
				n += e.Count
			}
			return float64(n), nil
		case "due", "sent", "confirmed", "received":
			return float64(t.Counts[name]), nil
		case "corrupted":
			if t.Counts[recording.Received.String()] == 0 {
				return 0, errors.New("nothing was received, so what was corrupted is not known")
			}
			return float64(t.Counts[name]), nil
		}
		if err := unobserved(t, name); err != nil {
			return 0, err
		}
		var n uint64
		for _, g := range t.Groups {
			n += map[string]uint64{
				"lost": g.Lost, "undelivered": g.Undelivered, "duplicated": g.Duplicated, "reordered": g.Reordered, "redelivered": g.Redelivered,
			}[name]
		}
		return float64(n), nil
	}}
}

// unobserved says why it is not known how many messages were lost, undelivered and so on, where it is not.
func unobserved(t *result.Topic, name string) error {
	if len(t.Groups) == 0 {
		return fmt.Errorf("nothing was received, so what was %s is not known", name)
	}
	for i := range t.Groups {
		if _, doubt := verdict.CountOf(&t.Groups[i].Account, name); doubt != "" {
			return errors.New(doubt)
		}
	}
	switch aliased, unaccounted := t.Counts[recording.Aliased.String()], t.Counts[recording.Unaccounted.String()]; {
	case aliased > 0:
		return fmt.Errorf("%d messages came in that were sent to another address: of these it is not known what was %s", aliased, name)
	case unaccounted > 0 && !t.OnlySends:
		return fmt.Errorf("%d messages were sent without a stamp: of these it is not known what was %s", unaccounted, name)
	}
	return nil
}

// Latency is a percentile, the maximum or the mean of a trend, in ns.
func Latency(trend, stat string) (Measure, error) {
	var of func(*hist.Histogram) (float64, error)
	var reach verdict.Condition
	switch {
	case stat == "max":
		reach.Method = "max"
		of = func(h *hist.Histogram) (float64, error) { return float64(h.Max()), nil }
	case stat == "mean":
		reach.Method = "avg"
		of = func(h *hist.Histogram) (float64, error) { return h.Mean(), nil }
	case strings.HasPrefix(stat, "p"):
		p, err := strconv.ParseFloat(stat[1:], 64)
		if err != nil || !(p > 0 && p < 100) {
			return Measure{}, fmt.Errorf("%q is not a percentile: write p50, p99 or p99.9", stat)
		}
		q, _ := strconv.ParseFloat(shift(stat[1:]), 64) // 99.9/100 in floating point is not 0.999
		reach.Method, reach.Quantile = "p", q
		of = func(h *hist.Histogram) (float64, error) {
			if !h.Supported(q) {
				return 0, fmt.Errorf("%d samples do not support %s: at least 10 must lie beyond it", h.Count(), stat)
			}
			return float64(h.Quantile(q)), nil
		}
	default:
		return Measure{}, fmt.Errorf("%s: %q is not p50, p99 or another percentile, max or mean", trend, stat)
	}
	return Measure{Name: trend, Stat: stat, Unit: "ns", reach: &reach, read: func(t *result.Topic) (float64, error) {
		h := t.Trends[trend]
		if h == nil || h.Count() == 0 {
			return 0, fmt.Errorf("no %s was measured", trend)
		}
		return of(h)
	}}, nil
}

// shift moves the decimal point of a percentile two places, as text: "99.9" is "0.999".
func shift(percent string) string { return percent + "e-2" }
