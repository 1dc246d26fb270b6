package recording_test

import (
	"os"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Every metric has a name of its own, is described, and is in docs/metrics.md.
func TestEachIsDescribed(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	check := func(name, says string) {
		if name == "" || says == "" || seen[name] {
			t.Errorf("%q, %q: no name of its own, or no description", name, says)
		}
		seen[name] = true
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/metrics.md says nothing of %s", name)
		}
	}
	for trend := range recording.Trend(recording.NumTrends) {
		check(trend.String(), trend.Label())
		if named, ok := recording.TrendNamed(trend.String()); !ok || named != trend {
			t.Errorf("%s is not found by its name", trend)
		}
	}
	for counter := range recording.Counter(recording.NumCounters) {
		if counter.Outcome() == "" { // these are the metric settled
			check(counter.String(), counter.Doc())
		}
	}
}
