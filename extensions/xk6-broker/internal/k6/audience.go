package k6

import (
	"strings"

	"go.k6.io/k6/v2/ext"
	"go.k6.io/k6/v2/metrics"
)

// audience is who gets samples: k6's own summary always, and else what k6 was told.
type audience struct {
	stored bool            // an output stores samples, with their tags
	asked  map[string]bool // metrics that a threshold names
}

// usage is where k6 notes down what a test makes use of; its type is in an internal package.
type usage interface{ Map() map[string]any }

// newAudience tells the audience of a test that runs: k6 has made its outputs by then.
func newAudience(u usage, thresholds map[string]metrics.Thresholds) audience {
	a := audience{stored: stored(u), asked: map[string]bool{}}
	for name := range thresholds {
		metric, _, _ := strings.Cut(name, "{")
		a.asked[metric] = true
	}
	return a
}

// stored reports whether k6 has made an output, by --out, K6_OUT or its configuration. Its web dashboard is none of them: it shows a metric
// without its tags, as the summary does. What cannot be known counts as stored.
func stored(u usage) bool {
	if u == nil {
		return true
	}
	noted := u.Map()
	if builtin, _ := noted["outputs"].([]string); len(builtin) > 0 {
		return true
	}
	extensions, _ := noted["extensions"].([]any)
	for _, e := range extensions {
		if e, ok := e.(*ext.Extension); ok && e.Type == ext.OutputExtension {
			return true
		}
	}
	return false
}

// wants reports whether a sample is passed on. The summary prints one line for all that a metric has: where that means something only tag by tag
// it would be nonsense, and a zero that nobody asked for is a line more to read.
func (a audience) wants(m *brokerMetrics, s *metrics.Sample) bool {
	if a.stored || a.asked[s.Metric.Name] {
		return true
	}
	return !m.tagged[s.Metric] && (s.Value != 0 || s.Metric.Type != metrics.Counter || m.atZero[s.Metric])
}
