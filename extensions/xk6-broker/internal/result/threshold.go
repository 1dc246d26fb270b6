package result

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Threshold is a condition that the test sets on a metric, and its outcome.
type Threshold struct {
	Metric string `json:"metric"` // with its tags, as the test names it
	Source string `json:"source"` // the condition
	Decision
}

// Decision is the outcome of a condition. One that was not judged has not held.
type Decision struct {
	Held   bool     `json:"held"`
	Judged bool     `json:"judged"`
	Value  *float64 `json:"value"` // what was compared: ms of a latency, else the number itself; nil if there is none
	Why    string   `json:"why"`   // why it was not judged
}

// Undecided is the decision on a condition that cannot be judged.
func Undecided(format string, args ...any) Decision {
	return Decision{Why: fmt.Sprintf(format, args...)}
}

// unless withdraws a decision for a reason, if there is one.
func (d Decision) unless(why string) Decision {
	if why != "" {
		d.Judged, d.Held, d.Why = false, false, why
	}
	return d
}

// AddThreshold adds a threshold. One that was not judged is a reason against the run.
func (r *Result) AddThreshold(t Threshold) {
	r.Thresholds = append(r.Thresholds, t)
	if t.Judged {
		return
	}
	why := reason.New(reason.ThresholdNotJudged, reason.Invalid, reason.Values{"metric": t.Metric, "source": t.Source, "detail": t.Why})
	if !slices.ContainsFunc(r.Verdict.Reasons, why.Same) {
		r.Verdict.Add(why)
	}
}

// Portion is a part of a trend: what one series measured of it in one loop.
type Portion struct {
	Broker, Topic, Group string // all "" if it is of no topic, as the wait of arrivals for a VU
	Loop                 recording.Loop
	*hist.Histogram
	Missing uint64 // values that are not in it; messages that a group did not receive come on top
}

// Latency decides a condition on the exact distribution of several portions of a trend. It is not judged if the run's
// latencies are not valid, if the percentile is not supported, or if delay or missing messages may decide it.
func (r *Result) Latency(c Condition, trend string, portions []Portion) Decision {
	all := &hist.Histogram{}
	first := -1
	for i, p := range portions {
		if p.Count() == 0 && p.Missing == 0 {
			continue
		}
		if first >= 0 && p.Loop != portions[first].Loop {
			return Undecided("it joins latencies of an open and of a closed loop: name one by the tag loop")
		}
		first = i
		all.Merge(p.Histogram)
	}
	if all.Count() == 0 {
		return Undecided("there are no samples")
	}
	d := c.Decide(c.Read(all))
	missing := uint64(0)
	for _, p := range portions {
		missing += p.Missing
		if !r.Verdict.Latencies && p.Topic != "" {
			return d.unless("the latencies of this run are not valid")
		}
	}
	if (c.Method == "p" || c.Method == "med") && !all.Supported(c.Quantile) {
		return d.unless(fmt.Sprintf("of %d samples %d lie beyond %s: there must be 10", all.Count(), all.Beyond(c.Quantile), QuantileName(c.Quantile)))
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		k := slices.IndexFunc(portions, func(p Portion) bool { return p.Broker == t.Broker && p.Topic == t.Topic && p.Count()+p.Missing > 0 })
		if k < 0 {
			continue
		}
		name := t.trendOf(trend, portions[k].Loop)
		for g := range t.Groups {
			if own := &t.Groups[g]; consumers(name) && slices.ContainsFunc(portions, func(p Portion) bool {
				return p.Broker == t.Broker && p.Topic == t.Topic && (p.Group == "" || p.Group == own.Group)
			}) {
				missing += t.missing(own, name)
			}
		}
		if t.blurred(name, 0) {
			v, apart := c.Read(all), float64(t.Apart.apart())/float64(time.Millisecond)
			if c.Holds(v-apart) != d.Held || c.Holds(v+apart) != d.Held {
				return d.unless(t.name() + ": " + t.clocksDiffer())
			}
		}
		if why := t.delayed(c, name, all); why != "" && !(c.upper() && d.Held) { // without delay it would hold too
			return d.unless(t.name() + ": " + why)
		}
	}
	if !(c.upper() && !d.Held) {
		return d.unless(c.incomplete(all, lacking(missing, all.Count())))
	}
	return d
}

func (t *Topic) trendOf(trend string, loop recording.Loop) string {
	if loop == recording.Closed && t.OpenLoop {
		return recording.InClosed(trend)
	}
	return trend
}

// incomplete returns why missing values, which are the greatest, may decide the condition.
func (c Condition) incomplete(h *hist.Histogram, absent float64) string {
	q := c.reach(h)
	if c.Method != "min" && (absent > absentShare*(1-q) || c.Method == "max" && absent > 0) {
		return reason.Percent(absent) + " of the values, the greatest, are missing"
	}
	return ""
}

// delayed returns why delay of the generator may make the compared value too high.
func (t *Topic) delayed(c Condition, name string, h *hist.Histogram) string {
	q := c.reach(h)
	value := h.Quantile(q)
	owed, misled := t.owed(name, hist.Percentile{Q: q, Value: value})
	if !misled || c.Method == "min" {
		return ""
	}
	return fmt.Sprintf("up to %s of its %s, %s, is delay of the load generator or its machine", reason.Percent(owed), QuantileName(q), reason.Duration(time.Duration(value)))
}

// TooLow returns why the compared value of a trend may be too low; "" if it cannot be.
func (t *Topic) TooLow(c Condition, name string) string {
	return cmp.Or(t.vague(c, name), c.incomplete(t.Trends[name], t.absent(name)))
}

// TooHigh returns why the compared value of a trend may be too high; "" if it cannot be.
func (t *Topic) TooHigh(c Condition, name string) string {
	return cmp.Or(t.vague(c, name), t.delayed(c, name, t.Trends[name]))
}

// vague returns why clocks may make the compared value another one by more than a tenth.
func (t *Topic) vague(c Condition, name string) string {
	if h := t.Trends[name]; h == nil || !t.blurred(name, int64(c.Read(h)*float64(time.Millisecond))) {
		return ""
	}
	return t.clocksDiffer()
}

func (t *Topic) clocksDiffer() string {
	return fmt.Sprintf("its clocks may differ by %s", reason.Duration(time.Duration(t.Apart.apart())))
}

// Account decides a condition on a count of the account, over the groups that are asked for. It is not judged if one
// of them cannot have that count. Seconds is how long the test took.
func (r *Result) Account(c Condition, count string, asked func(*Topic, *Group) bool, seconds float64) Decision {
	var sum uint64
	judged, why, ignored := false, "", ""
	for i := range r.Topics {
		t := &r.Topics[i]
		for k := range t.Groups {
			g := &t.Groups[k]
			if !asked(t, g) {
				continue
			}
			n, doubt := CountOf(&g.Account, count)
			if slices.Contains(copyCounts, count) && !g.Copies() { // it received another topic's messages only
				ignored = t.NameOf(g) + ": " + doubt
				continue
			}
			judged = true
			sum += n
			if doubt != "" && why == "" {
				why = t.NameOf(g) + ": " + doubt
			}
		}
	}
	if !judged {
		return Undecided("%s", cmp.Or(ignored, "there is no such group: nothing of the kind was observed"))
	}
	if why == "" && !r.Verdict.Account {
		why = "the account of this run is not valid"
	}
	return c.DecideCount(float64(sum), seconds).unless(why)
}

// copyCounts are the counts that only received messages can have.
var copyCounts = []string{"duplicated", "reordered", "redelivered"}

const (
	// NoCopies is why copies of what is read back are not known.
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
	switch copies := slices.Contains(copyCounts, name); {
	case !ok:
		return 0, fmt.Sprintf("the account has no count %q", name)
	case copies && a.Group == account.ReadBack:
		return n, NoCopies
	case name == "reordered" && a.Unordered:
		return n, NoOrder
	case copies && a.Received+a.Drained == 0:
		return n, "nothing was received"
	case copies:
		return n, ""
	case (name == "lost" || name == "undelivered") && a.Uncertain > 0:
		return n, fmt.Sprintf("%d messages are uncertain", a.Uncertain)
	case a.Expected == 0:
		return n, "no message was expected"
	}
	return n, ""
}

// name is the topic's name in reasons, with the broker if another one has a topic of this name.
func (t *Topic) name() string {
	if t.Namesake {
		return t.Topic + " at " + t.Broker
	}
	return t.Topic
}

// NameOf is a group's name in reasons.
func (t *Topic) NameOf(g *Group) string {
	if g.Group == "" {
		return t.name()
	}
	return t.name() + ", " + g.Group
}

// Copies reports whether the account has duplicates of the group: not of other topics' messages, nor of what is read back.
func (g *Group) Copies() bool {
	return g.Group != account.ReadBack && (g.Received+g.Drained > 0 || g.Strangers == 0)
}
