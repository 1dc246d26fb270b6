package k6

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// latencies returns the distributions of a loop for scripts, by trend, in ms. With open and closed
// loops the closed ones have names of their own.
func latencies(all engine.Distributions) map[string]any {
	open := false
	for t, h := range all[recording.Open] {
		open = open || h != nil && recording.Trend(t).Looped()
	}
	named := map[string]any{}
	for l := range recording.Loop(recording.NumLoops) {
		for t := range recording.Trend(recording.NumTrends) {
			h := all[l][t]
			switch {
			case h == nil || h.Count() == 0:
			case open:
				named[t.In(l)] = latencyOf(h)
			default:
				named[t.String()] = latencyOf(h)
			}
		}
	}
	return named
}

// latencyOf returns the statistics of a distribution that its samples support.
func latencyOf(h *hist.Histogram) map[string]any {
	stats := map[string]any{
		"count": h.Count(),
		"min":   ms(h.Min()),
		"mean":  h.Mean() / float64(time.Millisecond),
		"max":   ms(h.Max()),
	}
	for name, value := range verdict.Spell(h) {
		stats[name] = ms(value)
	}
	return stats
}
