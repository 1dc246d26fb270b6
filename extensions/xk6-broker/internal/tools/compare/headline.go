package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Headline is what a reader wants to know first of how a side differs from the first: the latency that matters, how much went through, and
// whether anything was lost.
type Headline struct {
	Topic, Side string
	Parts       []Part
}

// Part is one measure of a headline.
type Part struct {
	Text  string
	Class string // "better" or "worse" where the tests are the same and the difference is known to be more than noise, else ""
}

// String is the headline on a terminal.
func (h Headline) String() string {
	parts := make([]string, len(h.Parts))
	for i, p := range h.Parts {
		parts[i] = p.Text
	}
	return strings.Join(parts, "; ")
}

// leading are the latencies that a run is about, the one that matters most first, and the percentiles that stand for them.
var (
	leading      = []recording.Trend{recording.E2ELatency, recording.RequestLatency, recording.PublishLatency}
	leadingStats = []string{"p99", "p90", "p50"}
)

// Headlines are those of all topics, of each side against the first.
func (c *Comparison) Headlines() []Headline {
	var all []Headline
	alike := len(c.DifferencesOf(Tested)) == 0
	for _, t := range c.Topics {
		for i := 1; i < len(c.Sides); i++ {
			h := Headline{Topic: t.Name, Side: c.Sides[i].Name, Parts: t.headline(i)}
			for k := range h.Parts {
				if !alike { // of another test nothing is better or worse
					h.Parts[k].Class = ""
				}
			}
			all = append(all, h)
		}
	}
	return all
}

func (t Topic) headline(side int) []Part {
	var parts []Part
	add := func(name, stat, label string, less bool) bool {
		i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name && r.Stat == stat })
		if i < 0 || len(t.Rows[i].Cells[0].Values) == 0 || len(t.Rows[i].Cells[side].Values) == 0 {
			return false
		}
		parts = append(parts, t.Rows[i].part(side, label, less))
		return true
	}
	latency := func() {
		for _, trend := range leading {
			for _, stat := range leadingStats {
				if add(trend.String(), stat, strings.ReplaceAll(trend.String(), "_", " ")+" "+stat, true) {
					return
				}
			}
		}
	}
	latency()
	add(recording.Confirmed.String(), "rate", "confirmed", false)
	add("lost", "", "lost", true)
	return parts
}

// part says how a measure differs on a side, of which less is better or worse.
func (r Row) part(side int, label string, less bool) Part {
	first, c := r.Cells[0], r.Cells[side]
	text := fmt.Sprintf("%s %s → %s", label, r.Show(first.Median), r.Show(c.Median))
	if c.Significance == Same {
		return Part{Text: text}
	}
	p := Part{Text: fmt.Sprintf("%s, %s, %s", text, c.change(), c.significance())}
	if c.Significance == Differs {
		p.Class = "worse"
		if (c.Median < first.Median) == less {
			p.Class = "better"
		}
	}
	return p
}

// change is how much more or less it is than on the first side.
func (c Cell) change() string {
	percent := 100 * (c.Ratio - 1)
	switch {
	case math.IsNaN(c.Ratio):
		return "from 0"
	case c.Ratio >= 100:
		return fmt.Sprintf("%.0fx", c.Ratio)
	case c.Ratio >= 10:
		return fmt.Sprintf("%.1fx", c.Ratio)
	case math.Abs(percent) >= 9.95:
		return fmt.Sprintf("%+.0f %%", percent)
	case math.Abs(percent) < 0.05:
		return "±0 %"
	}
	return fmt.Sprintf("%+.1f %%", percent)
}

// significance says in words whether the difference is more than noise.
func (c Cell) significance() string {
	switch c.Significance {
	case Differs:
		return fmt.Sprintf("significant (p=%.3f)", c.P)
	case Noise:
		return fmt.Sprintf("within noise (p=%.3f)", c.P)
	}
	return "too few runs to tell it from noise"
}
