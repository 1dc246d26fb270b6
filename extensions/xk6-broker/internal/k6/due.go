package k6

import (
	"math/big"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
)

// dueTimes has the due times of a VU's sends. The first send of an iteration was due when the
// iteration was, and each further one the iteration's lateness before its call. Without a schedule
// the loop is closed: due is 0.
type dueTimes struct {
	in        *instance
	iteration int64
	scenario  string
	slots     *slots // of the scenario; nil without a schedule
	lag       int64  // of the iteration
}

// next returns the due time of a send. It is called on the event loop.
func (d *dueTimes) next() engine.Timing {
	if d.in.vu.State() == nil { // in the init context
		return engine.Timing{}
	}
	if arrival, ok := executors.FromContext(d.in.vu.Context()); ok {
		return d.exact(arrival)
	}
	return engine.Timing{Due: d.derived()}
}

// exact is for a send in an open-arrival-rate scenario.
func (d *dueTimes) exact(arrival executors.Arrival) engine.Timing {
	if iteration := d.in.vu.State().Iteration; d.scenario != arrival.Scenario || d.iteration != iteration {
		d.scenario, d.iteration = arrival.Scenario, iteration
		return engine.Timing{Due: arrival.Due, Free: arrival.Free}
	}
	now := driver.Now()
	return engine.Timing{Due: now - (arrival.Started - arrival.Due), Free: now - (arrival.Started - arrival.Free)}
}

// derived is for a scenario of k6's constant-arrival-rate; 0 in any other.
func (d *dueTimes) derived() int64 {
	state := d.in.vu.State()
	scenario := lib.GetScenarioState(d.in.vu.Context())
	if scenario == nil { // setup and teardown
		return 0
	}
	now := driver.Now()
	if d.scenario != scenario.Name {
		d.scenario, d.iteration = scenario.Name, -1
		d.slots = d.in.run.slotsOf(state.Options.Scenarios[scenario.Name], scenario.StartTime)
	}
	if d.slots == nil {
		return 0
	}
	if d.iteration == state.Iteration {
		return now - d.lag
	}
	d.iteration = state.Iteration
	due := d.slots.due(state, now)
	d.lag = now - due
	return due
}

// slots are the due times of the iterations of k6's constant-arrival-rate, by their number.
type slots struct {
	start, period int64
	dropped       func() uint64
}

// slotsOf returns the slots of a scenario; nil if it is not one of constant-arrival-rate. k6 cuts
// the period to whole nanoseconds, and does not show the start of a ramp.
func (r *run) slotsOf(config lib.ExecutorConfig, start time.Time) *slots {
	c, ok := config.(*executor.ConstantArrivalRateConfig)
	if !ok {
		return nil
	}
	period, _ := new(big.Rat).SetFrac64(int64(c.TimeUnit.TimeDuration()), c.Rate.Int64).Float64()
	return &slots{start: driver.Now() - int64(time.Since(start)), period: int64(period), dropped: r.dropped}
}

// due returns the due time of the iteration. After k6 has dropped an arrival it is not known, and
// the dropped arrivals are a reason against the run.
func (s *slots) due(state *lib.State, now int64) int64 {
	if s.dropped() > 0 {
		return now
	}
	return min(
		now, s.start+s.period*int64(state.GetScenarioGlobalVUIter()),
	) //gosec:disable G115 -- a count, far below the limit
}

// dropped returns the number of arrivals that k6 dropped, as of some 50 ms ago.
func (r *run) dropped() uint64 {
	state := r.state.Load()
	if state == nil {
		return 0
	}
	return droppedSoFar(state.builtin.DroppedIterations)
}

// droppedSoFar reads k6's own count, one word. A module cannot take the lock under which k6 writes
// it.
//
//go:norace
func droppedSoFar(m *metrics.Metric) uint64 {
	sink, ok := m.Sink.(*metrics.CounterSink)
	if !ok {
		return 0
	}
	return uint64(sink.Value)
}

// arrival returns the arrival of the iteration; undefined outside an open-arrival-rate scenario.
func (in *instance) arrival() any {
	a, ok := executors.FromContext(in.vu.Context())
	if !ok {
		return nil
	}
	return map[string]any{"due": ms(a.Due), "lag": ms(a.Started - a.Due), "index": a.Index}
}
