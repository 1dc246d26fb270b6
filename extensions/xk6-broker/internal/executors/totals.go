package executors

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// ScenarioTotals is what became of a scenario's arrivals, as far as this process has a share in it.
type ScenarioTotals struct {
	Scenario string
	Due      uint64 // arrivals whose time came
	Started  uint64 // of those, how many had an iteration
	Unserved uint64 // of those, how many never will, known once the scenario is over
	Waiting  uint64 // of those, how many have none yet, while the scenario runs
	Since    int64  // when the first of these was due, by [driver.Now]
	MaxQueue uint64 // the most that ever waited at once
	// Lag is how much later than due iterations began, in ns.
	Lag *hist.Histogram
	// Sampled is what k6 was given of it; nil until the scenario is over.
	Sampled *hist.Histogram
	// Tags are those of the scenario's samples.
	Tags *metrics.TagSet `json:"-"`
}

var tallies struct {
	sync.Mutex
	byScenario map[string]*tally
}

// Totals are those of all scenarios that have begun, by name. While a scenario runs they are those so far.
func Totals() []ScenarioTotals {
	tallies.Lock()
	defer tallies.Unlock()
	all := make([]ScenarioTotals, 0, len(tallies.byScenario))
	for _, name := range slices.Sorted(maps.Keys(tallies.byScenario)) {
		all = append(all, tallies.byScenario[name].totals())
	}
	return all
}

// tally counts a scenario's arrivals.
type tally struct {
	scenario string
	line     *line
	tags     *metrics.TagSet // of all samples
	lag      *hist.Recorder
	passed   atomic.Pointer[hist.Histogram] // of lag, to k6
	final    atomic.Pointer[uint64]         // arrivals that were due in the end
}

func newTally(scenario string, l *line, tags *metrics.TagSet) *tally {
	t := &tally{scenario: scenario, line: l, tags: tags, lag: hist.NewRecorder(min(runtime.GOMAXPROCS(0), 8))}
	tallies.Lock()
	defer tallies.Unlock()
	if tallies.byScenario == nil {
		tallies.byScenario = map[string]*tally{}
	}
	tallies.byScenario[scenario] = t
	return t
}

// finish stops the clock.
func (t *tally) finish() {
	due := t.line.agenda.due(driver.Now())
	t.line.deepen(due - t.line.taken.Load())
	t.final.Store(&due)
}

func (t *tally) totals() ScenarioTotals {
	s := ScenarioTotals{
		Scenario: t.scenario, Started: t.line.taken.Load(), MaxQueue: t.line.deepest.Load(),
		Lag: t.lag.Snapshot(), Sampled: t.passed.Load(), Tags: t.tags,
	}
	if due := t.final.Load(); due != nil {
		s.Due, s.Unserved = *due, *due-s.Started
	} else {
		now := driver.Now()
		s.Due = max(s.Started, t.line.agenda.due(now))
		s.Waiting, s.Since = s.Due-s.Started, min(now, t.line.nextDue.Load())
	}
	return s
}
