package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// drawn are the trends of the percentile curves. A latency and its uncorrected time have one colour, the time is dashed.
var drawn = []struct {
	trend  recording.Trend
	colour int
	dashed bool
}{
	{recording.PublishLatency, 0, false},
	{recording.PublishTime, 0, true},
	{recording.E2ELatency, 1, false},
	{recording.E2ETime, 1, true},
	{recording.DeliveryWait, 4, true},
	{recording.RequestLatency, 2, false},
	{recording.RequestTime, 2, true},
	{recording.FailedLatency, 3, false},
}

// uncorrected are the times beside a latency that is counted from when a message was due.
var uncorrected = []recording.Trend{recording.PublishTime, recording.E2ETime, recording.RequestTime}

// overTimeTrends are the latencies that are drawn over time.
var overTimeTrends = []recording.Trend{recording.PublishLatency, recording.E2ELatency, recording.DeliveryWait, recording.RequestLatency}

// lags are the latenesses that are drawn over time.
var lags = []struct {
	trend recording.Trend
	note  string
}{
	{recording.ScheduleLag, "Due → sent: waiting for a VU or for room in the window, and the load generator's own lateness."},
	{recording.GeneratorLag, "The part of schedule lag that no broker causes. Where it is large, the test measured itself."},
}

// charts draws one topic: its distributions as they were in the phase that leads, and all of it over time. The prefix keeps the ids of
// several topics apart.
func charts(prefix string, t, led *result.Topic) []Chart {
	var all []Chart
	if c, ok := curves(prefix, led); ok {
		all = append(all, c)
	}
	if c, ok := byGroup(prefix, led); ok {
		all = append(all, c)
	}
	for _, o := range overTimeTrends {
		if h := t.Trends[o.String()]; h != nil && h.Count() > 0 {
			all = append(all, quantilesOverTime(prefix+o.String(), capital(o.Title())+" over time", "", t.OverTime[o.String()]))
		}
	}
	all = append(all, throughput(prefix, t)...)
	all = append(all, queues(prefix, t))
	for _, l := range lags {
		if h := t.Trends[l.trend.String()]; h != nil && h.Count() > 0 {
			all = append(all, quantilesOverTime(prefix+l.trend.String(), capital(l.trend.Title()), l.note, t.OverTime[l.trend.String()]))
		}
	}
	if c, ok := errorsOverTime(prefix, t); ok {
		all = append(all, c)
	}
	cpu := overTime(prefix+"cpu", "CPU of the load generator's process", "%", "", t.History)
	cpu.line("share of its CPUs", 0, t.History, func(p result.Point) float64 { return 100 * p.CPU })
	return append(all, cpu)
}

// curves draws the latencies by percentile.
func curves(prefix string, t *result.Topic) (Chart, bool) {
	var distributions []Distribution
	for _, d := range drawn {
		text := d.trend.Label()
		if slices.Contains(uncorrected, d.trend) {
			text += ", uncorrected"
		}
		if h := t.Trends[d.trend.String()]; h != nil && h.Count() > 0 {
			distributions = append(distributions, Distribution{label(text, t.OpenLoop), h, d.colour, d.dashed})
		}
		if h := t.Trends[d.trend.In(recording.Closed)]; h != nil && h.Count() > 0 {
			distributions = append(distributions, Distribution{ofClosed(text), h, (d.colour + 5) % Palette, d.dashed})
		}
	}
	return Curves(prefix+"curves", "Latency by percentile",
		"Solid: from when a message was due. Dashed: from when it was sent, which hides the waiting before. "+
			"Each line ends where fewer than 10 samples lie beyond it.", distributions), len(distributions) > 0
}

// byGroup draws the latencies of each group, where there are several.
func byGroup(prefix string, t *result.Topic) (Chart, bool) {
	var all []Distribution
	for i, g := range t.Groups {
		for _, d := range []struct {
			trend  recording.Trend
			dashed bool
		}{{recording.E2ELatency, false}, {recording.DeliveryWait, true}} {
			if h := g.Trends[d.trend.String()]; h != nil && h.Count() > 0 {
				all = append(all, Distribution{groupName(g) + ", " + d.trend.Title(), h, i % Palette, d.dashed})
			}
		}
	}
	return Curves(prefix+"groups", "Latency by consumer group",
		"Solid: end-to-end latency, due → handed over. Dashed: the part of it that the consumers caused, received → handed over.", all), len(t.Groups) > 1 && len(all) > 0
}

// queues draws what waits: in flight, confirmed but not received, and what the broker says that it holds.
func queues(prefix string, t *result.Topic) Chart {
	c := overTime(prefix+"queues", "Backlog and in flight", "",
		"In flight: handed to the client and not yet confirmed, of the whole process. Outstanding: confirmed and not yet received. "+
			"Backlog: what the broker says it holds. Each is the most that was seen.", t.History)
	c.line("in flight", 0, t.History, func(p result.Point) float64 { return float64(p.InFlight) })
	if len(t.Groups) > 0 {
		c.line("outstanding", 1, t.History, func(p result.Point) float64 { return float64(p.Outstanding) })
	}
	groups := map[string]bool{}
	for _, p := range t.History {
		for group := range p.Backlog {
			groups[group] = true
		}
	}
	for i, group := range slices.Sorted(maps.Keys(groups)) {
		name := "backlog"
		if group != "" {
			name = fmt.Sprintf("backlog of %s", group)
		}
		c.line(name, (2+i)%Palette, t.History, func(p result.Point) float64 {
			n, ok := p.Backlog[group]
			if !ok {
				return math.NaN()
			}
			return float64(n)
		})
	}
	return c
}

// Palette is how many colours the page has.
const Palette = 8

func errorsOverTime(prefix string, t *result.Topic) (Chart, bool) {
	c := overTime(prefix+"errors", "Errors by kind", "/s", "", t.History)
	kinds := map[string]bool{}
	for _, p := range t.History {
		for kind := range p.ErrorKinds {
			kinds[kind] = true
		}
	}
	for i, kind := range slices.Sorted(maps.Keys(kinds)) {
		c.line(kind, i%Palette, t.History, func(p result.Point) float64 {
			if p.Seconds == 0 {
				return math.NaN()
			}
			return float64(p.ErrorKinds[kind]) / p.Seconds
		})
	}
	return c, len(kinds) > 0
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
