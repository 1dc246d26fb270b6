package verdict

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Condition is the condition of a threshold in k6's grammar: "p(99.9)<50".
type Condition struct {
	Method   string  // avg, min, max, med, p, count, rate or value
	Quantile float64 // of the methods p, med, min and max, 0 to 1
	Operator string  // <, <=, >, >=, ==, === or !=
	Limit    float64
}

var syntax = regexp.MustCompile(
	`^\s*(avg|min|max|med|count|rate|value|p(?:\(([^()<>=!]+)\))?)\s*(<=|<|>=|>|===|==|!=)\s*([^<>=!]+)$`)

// ParseCondition parses the source of a threshold as k6 does.
func ParseCondition(source string) (Condition, error) {
	parts := syntax.FindStringSubmatch(source)
	if parts == nil {
		return Condition{}, fmt.Errorf("threshold %q: compare avg, min, med, max, p(N), count, rate or value", source)
	}
	limit, err := strconv.ParseFloat(strings.TrimSpace(parts[4]), 64)
	if err != nil {
		return Condition{}, fmt.Errorf("threshold %q: %w", source, err)
	}
	c := Condition{Method: parts[1], Operator: parts[3], Limit: limit}
	switch c.Method {
	case "med":
		c.Quantile = 0.5
	case "max":
		c.Quantile = 1
	case "p": // k6 takes p for p(0)
		c.Method = "min"
	}
	if parts[2] == "" {
		return c, nil
	}
	percent, err := strconv.ParseFloat(parts[2], 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return Condition{}, fmt.Errorf("threshold %q: a percentile is a number from 0 to 100", source)
	}
	// The decimal text is shifted: 99.9/100 is not 0.999 in floating point, and ranks are exact.
	c.Quantile, _ = strconv.ParseFloat(strconv.FormatFloat(percent, 'f', -1, 64)+"e-2", 64)
	switch c.Method = "p"; c.Quantile {
	case 0:
		c.Method = "min"
	case 1:
		c.Method = "max"
	}
	return c, nil
}

// Holds reports whether a value fulfils the condition.
func (c Condition) Holds(v float64) bool {
	switch c.Operator {
	case "<":
		return v < c.Limit
	case "<=":
		return v <= c.Limit
	case ">":
		return v > c.Limit
	case ">=":
		return v >= c.Limit
	case "!=":
		return v != c.Limit
	}
	return v == c.Limit
}

// upper reports whether the condition is an upper limit.
func (c Condition) upper() bool { return c.Operator == "<" || c.Operator == "<=" }

// Read returns the value of a distribution that the condition compares, in ms.
func (c Condition) Read(h *hist.Histogram) float64 {
	return float64(c.nanoseconds(h)) / float64(time.Millisecond)
}

func (c Condition) nanoseconds(h *hist.Histogram) int64 {
	switch c.Method {
	case "min":
		return h.Min()
	case "max":
		return h.Max()
	case "avg":
		return int64(h.Mean())
	}
	return h.Quantile(c.Quantile)
}

// reach returns the quantile that the condition relies on: the median for a mean, and for a maximum
// the greatest one that is shown and supported.
func (c Condition) reach(h *hist.Histogram) float64 {
	switch c.Method {
	case "avg":
		return 0.5
	case "max":
		for i := len(quantiles) - 1; i >= 0; i-- {
			if h.Supported(quantiles[i]) {
				return quantiles[i]
			}
		}
	}
	return c.Quantile
}

// Decide compares a value.
func (c Condition) Decide(v float64) result.Decision {
	d := result.Decision{Judged: true, Held: c.Holds(v)}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		d.Value = &v
	}
	return d
}

// DecideCount compares a counter that reached n in a number of seconds.
func (c Condition) DecideCount(n, seconds float64) result.Decision {
	if c.Method != "rate" {
		return c.Decide(n)
	}
	if seconds <= 0 {
		return Undecided("the test took no time")
	}
	return c.Decide(n / seconds)
}

// Undecided is the decision on a condition that cannot be judged.
func Undecided(format string, args ...any) result.Decision {
	return result.Decision{Why: fmt.Sprintf(format, args...)}
}

// unless withdraws a decision for a reason, if there is one.
func unless(d result.Decision, why string) result.Decision {
	if why != "" {
		d.Judged, d.Held, d.Why = false, false, why
	}
	return d
}

// AddThreshold adds a threshold. One that was not judged is a reason against the run.
func AddThreshold(r *result.Result, t result.Threshold) {
	r.Thresholds = append(r.Thresholds, t)
	if t.Judged {
		return
	}
	values := facts{"metric": t.Metric, "source": t.Source, "detail": t.Why}
	why := reason.New(reason.ThresholdNotJudged, reason.Invalid, values)
	if !slices.ContainsFunc(r.Verdict.Reasons, why.Same) {
		r.Verdict.Add(why)
	}
}

// Portion is a part of a trend: the values of one series in one loop.
type Portion struct {
	Broker, Topic, Group string // all "" if it is of no topic, as the wait of arrivals for a VU
	Loop                 recording.Loop
	*hist.Histogram
	Missing uint64 // values that are not in it; messages that a group did not receive come on top
}

// Latency decides a condition on the exact distribution of several portions of a trend. It is not
// judged if the run's latencies are not valid, if the percentile is not supported, or if delay,
// clocks or missing messages may decide it.
func Latency(r *result.Result, c Condition, trend string, portions []Portion) result.Decision {
	portions = slices.DeleteFunc(slices.Clone(portions), func(p Portion) bool { return p.Count() == 0 && p.Missing == 0 })
	all, missing, named := &hist.Histogram{}, uint64(0), false
	for _, p := range portions {
		if p.Loop != portions[0].Loop {
			return Undecided("it joins latencies of an open and of a closed loop: name one by the tag loop")
		}
		all.Merge(p.Histogram)
		missing += p.Missing
		named = named || p.Topic != ""
	}
	if all.Count() == 0 {
		return Undecided("there are no samples")
	}
	d := c.Decide(c.Read(all))
	switch q := c.Quantile; {
	case named && !r.Verdict.Latencies:
		return unless(d, "the latencies of this run are not valid")
	case (c.Method == "p" || c.Method == "med") && !all.Supported(q):
		why := "of %d samples %d lie beyond %s: there must be 10"
		return unless(d, fmt.Sprintf(why, all.Count(), all.Beyond(q), QuantileName(q)))
	}
	for _, t := range topicsOf(r) {
		name := trend
		own := slices.DeleteFunc(slices.Clone(portions), func(p Portion) bool {
			return p.Broker != t.Broker || p.Topic != t.Topic.Topic
		})
		if len(own) == 0 {
			continue
		}
		if own[0].Loop == recording.Closed && t.OpenLoop {
			name = recording.InClosed(trend)
		}
		for i := range t.Groups {
			g := &t.Groups[i]
			if slices.ContainsFunc(own, func(p Portion) bool { return p.Group == "" || p.Group == g.Group }) {
				missing += t.missing(g, name)
			}
		}
		if why := t.doubt(c, name, all, d.Held); why != "" {
			return unless(d, t.name+": "+why)
		}
	}
	if c.upper() && !d.Held { // with the missing ones it would not hold either
		return d
	}
	return unless(d, c.incomplete(all, lacking(missing, all.Count())))
}

// doubt returns why clocks or delay may decide a condition; "" if they cannot.
func (t topic) doubt(c Condition, name string, h *hist.Histogram, held bool) string {
	if t.blurred(name, 0) {
		v, gap := c.Read(h), float64(t.Apart.Most())/float64(time.Millisecond)
		if c.Holds(v-gap) != held || c.Holds(v+gap) != held {
			return t.clocksDiffer()
		}
	}
	if c.upper() && held { // without delay it would hold too
		return ""
	}
	return t.delayed(c, name, h)
}

// incomplete returns why missing values, which are the greatest, may decide the condition.
func (c Condition) incomplete(h *hist.Histogram, absent float64) string {
	if c.Method == "min" || absent <= absentShare*(1-c.reach(h)) && (c.Method != "max" || absent == 0) {
		return ""
	}
	return reason.Percent(absent) + " of the values, the greatest, are missing"
}

// delayed returns why delay of the generator may make the compared value too high.
func (t topic) delayed(c Condition, name string, h *hist.Histogram) string {
	q := c.reach(h)
	p := hist.Percentile{Q: q, Value: h.Quantile(q)}
	if c.Method == "min" || !t.misled(name, p) {
		return ""
	}
	return fmt.Sprintf("up to %s of its %s, %s, is delay of the load generator or its machine",
		reason.Percent(t.owed(name, p)), QuantileName(q), reason.Duration(time.Duration(p.Value)))
}

// Doubts returns why a value may be too low, and why it may be too high; "" if it cannot be.
func Doubts(measured *result.Topic, c Condition, name string) (low, high string) {
	t, h := topic{Topic: measured}, measured.Trends[name]
	if t.blurred(name, c.nanoseconds(h)) {
		return t.clocksDiffer(), t.clocksDiffer()
	}
	return c.incomplete(h, t.absent(name)), t.delayed(c, name, h)
}

func (t topic) clocksDiffer() string {
	return fmt.Sprintf("its clocks may differ by %s", reason.Duration(time.Duration(t.Apart.Most())))
}

// Account decides a condition on a count of the account, over the groups that are asked for. It is
// not judged if one of them cannot have that count. Seconds is how long the test took.
func Account(
	r *result.Result, c Condition, count string, asked func(*result.Topic, *result.Group) bool, seconds float64,
) result.Decision {
	var sum uint64
	judged, why, ignored := false, "", ""
	for _, t := range topicsOf(r) {
		for k := range t.Groups {
			g := &t.Groups[k]
			if !asked(t.Topic, g) {
				continue
			}
			n, doubt := CountOf(&g.Account, count)
			if doubt != "" {
				doubt = t.name + ", " + g.Group + ": " + doubt
			}
			if slices.Contains(copyCounts, count) && !g.Copies() { // it received another topic's messages only
				ignored = doubt
				continue
			}
			judged = true
			sum += n
			why = cmp.Or(why, doubt)
		}
	}
	if !judged {
		return Undecided("%s", cmp.Or(ignored, "there is no such group: nothing of the kind was observed"))
	}
	if !r.Verdict.Account {
		why = cmp.Or(why, "the account of this run is not valid")
	}
	return unless(c.DecideCount(float64(sum), seconds), why)
}

// copyCounts are the counts that only received messages can have.
var copyCounts = []string{"duplicated", "reordered", "redelivered"}

const (
	// NoCopies is why copies of messages that are read back are not known.
	NoCopies = "not observed: copies of messages that are read back from the broker"
	// NoOrder is why it is not known which messages were reordered.
	NoOrder = "not observed: the broker delivers messages out of their order because of a priority, a delay or a requeue"
)

// CountOf returns a count of an account, and why it is not known; "" if it is.
func CountOf(a *account.Account, name string) (n uint64, why string) {
	counts := map[string]uint64{
		"lost": a.Lost, "undelivered": a.Undelivered, "uncertain": a.Uncertain, "drained": a.Drained,
		"duplicated": a.Duplicated, "reordered": a.Reordered, "redelivered": a.Redelivered,
	}
	n, ok := counts[name]
	copies := slices.Contains(copyCounts, name)
	switch {
	case !ok:
		why = fmt.Sprintf("the account has no count %q", name)
	case copies && a.Group == account.ReadBack:
		why = NoCopies
	case name == "reordered" && a.Unordered:
		why = NoOrder
	case copies && a.Received+a.Drained == 0:
		why = "nothing was received"
	case copies:
	case (name == "lost" || name == "undelivered") && a.Uncertain > 0:
		why = fmt.Sprintf("%d messages are uncertain", a.Uncertain)
	case a.Expected == 0:
		why = "no message was expected"
	}
	return n, why
}
