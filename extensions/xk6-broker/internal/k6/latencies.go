package k6

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// latencies is what a script gets of the distributions of a loop: by the trend's name, in ms. Where messages of both loops came, those of
// the closed one are apart.
func latencies(of engine.Distributions) map[string]any {
	open := false
	for t, h := range of[recording.Open] {
		open = open || h != nil && recording.Trend(t).Looped()
	}
	all := map[string]any{}
	for l := range recording.Loop(recording.NumLoops) {
		for t := range recording.Trend(recording.NumTrends) {
			h := of[l][t]
			switch {
			case h == nil || h.Count() == 0:
			case open:
				all[t.In(l)] = latencyOf(h)
			default:
				all[t.String()] = latencyOf(h)
			}
		}
	}
	return all
}

// latencyOf spells out a distribution as far as its samples support it.
func latencyOf(h *hist.Histogram) map[string]any {
	spelt := map[string]any{"count": h.Count(), "min": ms(h.Min()), "mean": h.Mean() / float64(time.Millisecond), "max": ms(h.Max())}
	for name, value := range verdict.Spell(h) {
		spelt[name] = ms(value)
	}
	return spelt
}
