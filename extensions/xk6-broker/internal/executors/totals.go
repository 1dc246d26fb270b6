package executors

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
)

// ScenarioTotals has the counts of a scenario's arrivals in this process.
type ScenarioTotals struct {
	Scenario string
	Due      uint64 // arrivals
	Started  uint64 // arrivals with an iteration
	Unserved uint64 // arrivals that get none, after the scenario

	Lag  *hist.Histogram // from due to the start of the iteration, in ns
	Tags *metrics.TagSet `json:"-"`
}

var tallies struct {
	sync.Mutex
	byScenario map[string]*tally
}

// Totals returns the totals of all scenarios that have begun, by name.
func Totals() []ScenarioTotals {
	tallies.Lock()
	defer tallies.Unlock()
	all := make([]ScenarioTotals, 0, len(tallies.byScenario))
	for _, name := range slices.Sorted(maps.Keys(tallies.byScenario)) {
		all = append(all, tallies.byScenario[name].totals())
	}
	return all
}

// tally counts a scenario's arrivals, and gives k6 the new counts once a second.
type tally struct {
	scenario string
	line     *line
	metrics  *Metrics
	tags     *metrics.TagSet // of all samples
	lag      *hist.Recorder
	final    atomic.Pointer[uint64] // arrivals that were due at the end

	out   chan<- metrics.SampleContainer
	trend samples.Trend
	last  ScenarioTotals
	at    time.Time // of the last flush
	halt  func()
}

func newTally(scenario string, l *line, m *Metrics, tags *metrics.TagSet) *tally {
	t := &tally{scenario: scenario, line: l, metrics: m, tags: tags, last: ScenarioTotals{Lag: &hist.Histogram{}}}
	t.lag = hist.NewRecorder(min(runtime.GOMAXPROCS(0), 8))
	tallies.Lock()
	defer tallies.Unlock()
	if tallies.byScenario == nil {
		tallies.byScenario = map[string]*tally{}
	}
	tallies.byScenario[scenario] = t
	return t
}

func (t *tally) totals() ScenarioTotals {
	s := ScenarioTotals{
		Scenario: t.scenario, Started: t.line.taken.Load(),
		Lag: t.lag.Snapshot(), Tags: t.tags,
	}
	if due := t.final.Load(); due != nil {
		s.Due, s.Unserved = *due, *due-s.Started
	} else {
		s.Due = max(s.Started, t.line.agenda.due(driver.Now()))
	}
	return s
}

// start begins to give k6 the counts, with a budget of samples of the wait in each interval.
func (t *tally) start(out chan<- metrics.SampleContainer, budget uint64) {
	t.out, t.trend, t.at = out, samples.Trend{Budget: budget}, time.Now()
	t.halt = samples.Each(func(time.Time) { t.flush(false) })
}

// finish makes the counts final. k6 accepts samples until all executors have returned.
func (t *tally) finish() {
	due := t.line.agenda.due(driver.Now())
	t.final.Store(&due)
	t.halt()
	t.flush(true)
}

// flush gives k6 an interval.
func (t *tally) flush(last bool) {
	b := &samples.Bundle{From: t.at, Now: time.Now()}
	now := t.totals()
	b.Add(t.metrics.Arrivals, t.tags, float64(now.Due-t.last.Due))
	b.Add(t.metrics.Length, t.tags, float64(now.Due-now.Started))
	if last {
		b.Add(t.metrics.Unserved, t.tags, float64(now.Unserved))
	}
	b.Spread(t.metrics.Wait, t.tags, t.trend.Take(now.Lag.Sub(t.last.Lag), 0, last))
	t.last, t.at = now, b.End()
	t.out <- b.Close()
}

// Metrics are the metrics of open-arrival-rate.
type Metrics struct {
	Wait     *metrics.Metric // from due to the start of the iteration
	Length   *metrics.Metric // arrivals that wait
	Arrivals *metrics.Metric // arrivals that were due
	Unserved *metrics.Metric // arrivals that never started
}

// RegisterMetrics makes the metrics, or returns the existing ones. A JavaScript module calls it in
// the init context, because k6 checks the names of thresholds before there is an executor.
func RegisterMetrics(r *metrics.Registry) (*Metrics, error) {
	m, errs := &Metrics{}, [4]error{}
	m.Wait, errs[0] = r.NewMetric("broker_queue_wait", metrics.Trend, metrics.Time)
	m.Length, errs[1] = r.NewMetric("broker_queue_length", metrics.Gauge)
	m.Arrivals, errs[2] = r.NewMetric("broker_arrivals", metrics.Counter)
	m.Unserved, errs[3] = r.NewMetric("broker_arrivals_unserved", metrics.Counter)
	return m, errors.Join(errs[:]...)
}

// Planned returns the longest time of a test by its scenarios. Consumers end when the others are
// over.
func Planned(es *lib.ExecutionState) time.Duration {
	longest, _ := lib.GetEndOffset(es.Test.Options.Scenarios.GetFullExecutionRequirements(es.ExecutionTuple))
	return longest
}
