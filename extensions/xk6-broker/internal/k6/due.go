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
	slots     *slots // of the scenario; nil if it is not one of constant-arrival-rate
	lag       int64  // of the iteration
}

// next returns the due time of a send. It is called on the event loop.
func (d *dueTimes) next() engine.Timing {
	state, scenario := d.in.vu.State(), lib.GetScenarioState(d.in.vu.Context())
	if state == nil || scenario == nil { // in the init context, setup and teardown
		return engine.Timing{}
	}
	now := driver.Now()
	first := d.scenario != scenario.Name || d.iteration != state.Iteration
	if d.scenario != scenario.Name {
		d.slots = slotsOf(state.Options.Scenarios[scenario.Name], scenario.StartTime)
	}
	d.scenario, d.iteration = scenario.Name, state.Iteration
	if arrival, ok := executors.FromContext(d.in.vu.Context()); ok {
		if first {
			return engine.Timing{Due: arrival.Due, Free: arrival.Free}
		}
		return engine.Timing{Due: now - (arrival.Started - arrival.Due), Free: now - (arrival.Started - arrival.Free)}
	}
	if d.slots == nil {
		return engine.Timing{}
	}
	if first {
		d.lag = 0
		// After k6 has dropped an arrival there is no due time, and the dropped arrivals are a
		// reason against the run.
		if d.in.run.dropped() == 0 {
			d.lag = max(0, now-d.slots.due(state))
		}
	}
	return engine.Timing{Due: now - d.lag}
}

// slots are the due times of the iterations of k6's constant-arrival-rate, by their number.
type slots struct{ start, period int64 }

// slotsOf returns the slots of a scenario; nil if it is not one of constant-arrival-rate. k6 cuts
// the period to whole nanoseconds, and does not show the start of a ramp.
func slotsOf(config lib.ExecutorConfig, start time.Time) *slots {
	c, ok := config.(*executor.ConstantArrivalRateConfig)
	if !ok {
		return nil
	}
	period, _ := new(big.Rat).SetFrac64(int64(c.TimeUnit.TimeDuration()), c.Rate.Int64).Float64()
	return &slots{start: driver.Now() - int64(time.Since(start)), period: int64(period)}
}

// due returns the due time of the iteration.
func (s *slots) due(state *lib.State) int64 {
	return s.start + s.period*int64(state.GetScenarioGlobalVUIter()) //gosec:disable G115 -- a count, far below the limit
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
