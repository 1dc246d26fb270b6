package result

import (
	"math"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// endings are the latencies by whose names the hiccups go that befell the ends of values, each with the times that end with it.
var endings = map[string]metric.Trend{
	metric.PublishLatency.String(): metric.PublishLatency, metric.PublishTime.String(): metric.PublishLatency,
	metric.RequestLatency.String(): metric.RequestLatency, metric.RequestTime.String(): metric.RequestLatency,
	metric.FailedLatency.String(): metric.FailedLatency,
	metric.E2ELatency.String():    metric.E2ELatency, metric.E2ETime.String(): metric.E2ELatency, metric.DeliveryWait.String(): metric.E2ELatency,
}

// endOf is the name by which a trend's hiccups go; false where the trend has no end that may be late.
func endOf(name string) (string, bool) {
	trend, closed := strings.CutSuffix(name, metric.ClosedSuffix)
	of, ok := endings[trend]
	switch {
	case !ok:
		return "", false
	case closed:
		return of.In(metric.Closed), true
	}
	return of.String(), true
}

// befell gives the hiccups of one process that befell the ends of what it measured, one for each value: those that are known, and else those of its
// platform, as they were over time. Added up over processes they have of each what share it has of the values.
func befell(trends, known map[string]*hist.Histogram, platform *hist.Histogram, consumers bool) map[string]*hist.Histogram {
	all := map[string]*hist.Histogram{}
	for name, h := range trends {
		end, ok := endOf(name)
		if !ok || end != name || ofConsumers(name) != consumers {
			continue
		}
		if of := known[name]; of != nil {
			all[name] = of
		} else if platform != nil && platform.Count() > 0 && h.Count() > 0 {
			all[name] = scaled(platform, h.Count())
		}
	}
	return all
}

func ofConsumers(name string) bool { return consumers(strings.TrimSuffix(name, metric.ClosedSuffix)) }

// scaled is n values that are distributed as those of h.
func scaled(h *hist.Histogram, n uint64) *hist.Histogram {
	all := &hist.Histogram{}
	var seen, done uint64
	for _, v := range downFrom(h, -1) {
		seen += uint64(v.n)
		upTo := uint64(math.Round(float64(seen) / float64(h.Count()) * float64(n)))
		all.RecordN(v.value, upTo-done)
		done = upTo
	}
	return all
}

// Befall says which hiccups befell the ends of what one process measured: those of its platform over time, or those that befell the messages that ended, of
// a latency and in a group or none, whichever is worse. Either may be nil.
func (t *Topic) Befall(platform *hist.Histogram, ended func(t metric.Trend, group string) *hist.Histogram) {
	t.Hiccups = worst(t.Trends, platform, "", ended)
	for i := range t.Groups {
		g := &t.Groups[i]
		g.Hiccups = worst(g.Trends, platform, g.Group, ended)
	}
}

// Befall is the same of a phase.
func (w *Window) Befall(platform *hist.Histogram, ended func(t metric.Trend, group string) *hist.Histogram) {
	w.Hiccups = worst(w.Trends, platform, "", ended)
	for i := range w.Groups {
		g := &w.Groups[i]
		g.Hiccups = worst(g.Trends, platform, g.Group, ended)
	}
}

func worst(trends map[string]*hist.Histogram, platform *hist.Histogram, group string, ended func(t metric.Trend, group string) *hist.Histogram) map[string]*hist.Histogram {
	known := map[string]*hist.Histogram{}
	for name, h := range trends {
		end, ok := endings[strings.TrimSuffix(name, metric.ClosedSuffix)]
		if !ok || h.Count() == 0 {
			continue
		}
		if of := ended(end, group); of != nil {
			known[name] = scaled(of, h.Count())
			if platform != nil {
				known[name] = greaterOf(known[name], scaled(platform, h.Count()))
			}
		}
	}
	return befell(trends, known, platform, group != "")
}

// greaterOf has at each place the greater value of two distributions of as many.
func greaterOf(a, b *hist.Histogram) *hist.Histogram {
	greater := &hist.Histogram{}
	var ofA, ofB float64 // values that are at least as great
	as, bs := downFrom(a, -1), downFrom(b, -1)
	for len(as)+len(bs) > 0 {
		value := int64(-1)
		for _, values := range [][]valued{as, bs} {
			if len(values) > 0 {
				value = max(value, values[0].value)
			}
		}
		if len(as) > 0 && as[0].value == value {
			ofA, as = ofA+as[0].n, as[1:]
		}
		if len(bs) > 0 && bs[0].value == value {
			ofB, bs = ofB+bs[0].n, bs[1:]
		}
		greater.RecordN(value, uint64(max(ofA, ofB))-greater.Count())
	}
	return greater
}

// half is as many values as a has, half of them distributed as those of b; either may be nil.
func half(a, b *hist.Histogram) *hist.Histogram {
	if a == nil || b == nil || a.Count() == 0 || b.Count() == 0 {
		return a
	}
	both := scaled(a, a.Count()/2)
	both.Merge(scaled(b, a.Count()-a.Count()/2))
	return both
}

// hiccups are those that befell the ends of a trend's values: of the whole topic or, where g is not nil, of one group. Where that is not told
// apart they are those of the platform over time, as far as these support the quantile; nil where nobody knows.
func (t *Topic) hiccups(name string, g *Group, q float64) *hist.Histogram {
	end, _ := endOf(name)
	of := t.Hiccups[end]
	if ofConsumers(name) {
		of = nil
		for i := range t.Groups {
			if one := &t.Groups[i]; g == nil || g.Group == one.Group {
				of = sum(of, one.Hiccups[end])
			}
		}
	}
	switch {
	case of != nil:
		return of
	case t.Seen == nil || !t.Seen.Supported(q):
		return nil
	}
	return t.Seen
}

// sum is both together, neither of which is changed; either may be nil.
func sum(a, b *hist.Histogram) *hist.Histogram {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return hist.Merged(hist.Merged(nil, a), b)
}

// addHiccups adds those that befell what another process measured of the topic, under the names that its trends have in the whole.
func (t *Topic) addHiccups(of *Result, from *Topic, named func(string) string) {
	t.Hiccups = added(t.Hiccups, befell(from.Trends, from.Hiccups, of.Platform.Seen(), false), named)
	for i := range from.Groups {
		g := t.group(from.Groups[i].Group)
		g.Hiccups = added(g.Hiccups, befell(from.Groups[i].Trends, from.Groups[i].Hiccups, of.Platform.Seen(), true), named)
	}
}

// addHiccups is the same of a phase.
func (w *Window) addHiccups(from *Window, platform *hist.Histogram, named func(string) string) {
	w.Hiccups = added(w.Hiccups, befell(from.Trends, from.Hiccups, platform, false), named)
	for i := range from.Groups {
		g := w.group(from.Groups[i].Group)
		g.Hiccups = added(g.Hiccups, befell(from.Groups[i].Trends, from.Groups[i].Hiccups, platform, true), named)
	}
}

// added is a map of distributions with others, nil where there are none.
func added(to, from map[string]*hist.Histogram, named func(string) string) map[string]*hist.Histogram {
	if to == nil && len(from) > 0 {
		to = map[string]*hist.Histogram{}
	}
	addTrends(to, from, named)
	return to
}

// Inherit gives a phase that was cut out of the run afterwards the hiccups of the whole, as nothing is known of them over time.
func (w *Window) Inherit(t *Topic) {
	w.Hiccups = t.Hiccups
	for i := range w.Groups {
		if k := slices.IndexFunc(t.Groups, func(g Group) bool { return g.Group == w.Groups[i].Group }); k >= 0 {
			w.Groups[i].Hiccups = t.Groups[k].Hiccups
		}
	}
}
