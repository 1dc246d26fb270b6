package result

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Portion is what one series measured of a trend in one loop.
type Portion struct {
	Broker, Topic, Group string // all "" where it is of no topic, as the wait of arrivals for a VU
	Loop                 recording.Loop
	*hist.Histogram
	Missing uint64 // how many values are not in it, the greatest; what a group did not receive is known without
}

// Latency decides a condition on the exact distribution of several portions of a trend. It cannot be judged where the run's latencies
// cannot be believed, where the samples do not support it, or where what is known to be wrong with the distribution could make a
// difference: lateness of the generator, which only makes a latency greater, and messages that are not in it, which were the slowest.
func (r *Result) Latency(c Condition, trend string, portions []Portion) Decision {
	portions = slices.DeleteFunc(slices.Clone(portions), func(p Portion) bool { return p.Count() == 0 && p.Missing == 0 })
	if len(portions) == 0 {
		return Undecided("there are no samples")
	}
	all := &hist.Histogram{}
	for _, p := range portions {
		if p.Loop != portions[0].Loop {
			return Undecided("it puts latencies of an open and of a closed loop together: name one by the tag loop")
		}
		all.Merge(p.Histogram)
	}
	if all.Count() == 0 {
		return Undecided("there are no samples")
	}
	return c.Decide(c.Of(all)).unless(r.doubt(c, trend, portions, all))
}

// Of is what the condition compares of a distribution, in ms.
func (c Condition) Of(h *hist.Histogram) float64 {
	var ns float64
	switch c.Method {
	case "min":
		ns = float64(h.Min())
	case "max":
		ns = float64(h.Max())
	case "avg":
		ns = h.Mean()
	default:
		ns = float64(h.Quantile(c.Quantile))
	}
	return ns / float64(time.Millisecond)
}

// doubt says why the condition cannot be judged; "" where it can.
func (r *Result) doubt(c Condition, trend string, portions []Portion, all *hist.Histogram) string {
	if !r.Verdict.Latencies && slices.ContainsFunc(portions, func(p Portion) bool { return p.Topic != "" }) {
		return "the latencies of this run cannot be believed"
	}
	if (c.Method == "p" || c.Method == "med") && !all.Supported(c.Quantile) {
		return fmt.Sprintf("of %d samples %d lie beyond %s: there must be 10", all.Count(), all.Beyond(c.Quantile), QuantileName(c.Quantile))
	}
	for _, p := range portions {
		if of, ok := r.whole(p, trend); ok {
			if why := of.topic.unclear(c, of.trend, c.Of(all)); why != "" {
				return of.name + why
			}
		}
	}
	if c.Method == "min" { // neither what is late nor what is missing is the least
		return ""
	}
	v := c.Of(all)
	missing, name := r.missing(trend, portions)
	if why := c.tooLow(all, lacking(missing, all.Count())); why != "" && !c.sameAbove(v) {
		return name + why
	}
	if c.sameBelow(v) {
		return ""
	}
	for _, p := range portions {
		of, ok := r.whole(p, trend)
		if !ok {
			continue
		}
		if why := of.topic.tooHigh(c, of.trend, of.Histogram, all); why != "" {
			return of.name + why
		}
	}
	return ""
}

// TooLow says why what the condition compares of a trend may be less than the truth: the slowest are not in it. It is "" where nothing
// makes it so.
func (t *Topic) TooLow(c Condition, name string) string {
	return cmp.Or(t.vague(c, name), c.tooLow(t.Trends[name], t.absent(name, nil)))
}

// TooHigh says why what the condition compares of a trend may be more than the truth: it has lateness of the generator. It is "" where
// nothing makes it so.
func (t *Topic) TooHigh(c Condition, name string) string {
	return cmp.Or(t.vague(c, name), t.tooHigh(c, name, t.Trends[name], t.Trends[name]))
}

// Late is how much of what the condition compares of a trend is lateness of the generator, or of its machine, at the same place.
func (t *Topic) Late(c Condition, name string) time.Duration {
	q, _ := c.reach(t.Trends[name])
	late := t.late(name, q, t.Trends[name].Quantile(q))
	if lag := t.Trends[recording.GeneratorLag.String()]; c.Method == "avg" && late > 0 && lag != nil {
		late = max(late, time.Duration(lag.Mean()))
	}
	return late
}

func (c Condition) tooLow(h *hist.Histogram, absent float64) string {
	if q, complete := c.reach(h); absent > absentShare*(1-q) || complete && absent > 0 {
		return reason.Percent(absent) + " of the values, the greatest, are not in it"
	}
	return ""
}

// tooHigh is for the part of a topic's distribution that is asked for.
func (t *Topic) tooHigh(c Condition, name string, h, part *hist.Histogram) string {
	q, _ := c.reach(part)
	late, ok := t.misled(name, h, q)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s of its %s, %v, is lateness of the load generator or its machine", reason.Percent(late.Owed), QuantileName(late.Q), reason.Duration(time.Duration(late.Value)))
}

// missing is how many values are in none of the portions of a trend, and whose they are, where they are of one topic or group, to begin a
// reason with. Which of the messages that a group did not receive are of a portion nobody knows: it may be all of them.
func (r *Result) missing(trend string, portions []Portion) (n uint64, name string) {
	type place struct{ broker, topic, group string }
	seen, names := map[place]bool{}, []string{}
	for _, p := range portions {
		lacks := p.Missing
		of, ok := r.whole(p, trend)
		if at := (place{p.Broker, p.Topic, p.Group}); ok && consumers(trend) && !seen[at] {
			seen[at] = true
			for _, g := range of.groups {
				lacks += of.topic.missing(of.trend, g)
			}
		}
		if n += lacks; lacks > 0 && ok && !slices.Contains(names, of.name) {
			names = append(names, of.name)
		}
	}
	if len(names) == 1 {
		return n, names[0]
	}
	return n, ""
}

// whole is the distribution that a portion is a part of: a trend of a topic, or of one of its groups.
type whole struct {
	*hist.Histogram
	name   string // to begin a reason with
	topic  *Topic
	groups []*Group // that it is of, if it is of consumers
	trend  string   // as the topic calls it
}

// whole is false of a portion that is of no topic.
func (r *Result) whole(p Portion, trend string) (whole, bool) {
	for i := range r.Topics {
		t := &r.Topics[i]
		if t.Broker != p.Broker || t.Topic != p.Topic {
			continue
		}
		if p.Loop == recording.Closed && t.OpenLoop {
			trend = recording.InClosed(trend)
		}
		of := whole{t.Trends[trend], t.name() + ": ", t, nil, trend}
		for k := range t.Groups {
			g := &t.Groups[k]
			if g.Group == p.Group && g.Trends[trend] != nil {
				return whole{g.Trends[trend], t.NameOf(g) + ": ", t, []*Group{g}, trend}, true
			}
			of.groups = append(of.groups, g)
		}
		return of, of.Histogram != nil
	}
	return whole{}, false
}

// reach is the quantile that a condition must be able to rely on, and whether it must have every message. A mean relies on the median.
// The maximum relies on the greatest quantile that is shown and supported, for it is one sample itself, and on that nothing is
// missing: what never came took longer than it.
func (c Condition) reach(h *hist.Histogram) (q float64, complete bool) {
	switch c.Method {
	case "avg":
		return 0.5, false
	case "max":
		q = shownQuantiles[0]
		for _, shown := range shownQuantiles {
			if h.Supported(shown) {
				q = shown
			}
		}
		return q, true
	}
	return c.Quantile, false
}
