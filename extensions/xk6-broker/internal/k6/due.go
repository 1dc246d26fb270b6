package k6

import (
	"math/big"
	"sync"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// dueTimes tells when what a VU sends was due.
//
// The first send of an iteration was due when the iteration was. The iteration's lateness holds for its further sends too: each was due
// that much before it was called. Where no schedule drives the VU, due is 0 and the loop a closed one.
type dueTimes struct {
	in        *instance
	iteration int64
	scenario  string
	slots     slots // of the scenario; nil where it has no schedule
	lag       int64 // of the present iteration
}

// next is when the send that is being called was due. It is called on the event loop.
func (d *dueTimes) next() engine.Timing {
	if d.in.vu.State() == nil { // in init, where nothing is sent
		return engine.Timing{}
	}
	if arrival, ok := executors.FromContext(d.in.vu.Context()); ok {
		return d.of(arrival)
	}
	return engine.Timing{Due: d.derived()}
}

// of is for a send in an open-arrival-rate scenario, which knows its due times.
func (d *dueTimes) of(arrival executors.Arrival) engine.Timing {
	if iteration := d.in.vu.State().Iteration; d.scenario != arrival.Scenario || d.iteration != iteration {
		d.scenario, d.iteration = arrival.Scenario, iteration
		return engine.Timing{Due: arrival.Due, Free: arrival.Free}
	}
	now := driver.Now()
	return engine.Timing{Due: now - (arrival.Started - arrival.Due), Free: now - (arrival.Started - arrival.Free)}
}

// derived is for one of k6's own arrival-rate scenarios; 0 in any other.
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

// slots gives the due times of a scenario's iterations.
type slots interface {
	due(state *lib.State, now int64) int64
}

// slotsOf finds the schedule of one of k6's own arrival-rate executors.
func (r *run) slotsOf(config lib.ExecutorConfig, start time.Time) slots {
	switch c := config.(type) {
	case *executor.ConstantArrivalRateConfig:
		return &constantSlots{start: unixNow(start), period: constantPeriod(c), dropped: r.dropped}
	case *executor.RampingArrivalRateConfig:
		r.slotsLock.Lock()
		defer r.slotsLock.Unlock()
		shared, ok := r.ramps[c.Name]
		if !ok {
			shared = newRampSlots(c, r.dropped)
			r.ramps[c.Name] = shared
		}
		if shared == nil {
			return nil
		}
		return shared
	}
	return nil
}

// unixNow puts a time of this process on the scale of [driver.Now].
func unixNow(t time.Time) int64 { return driver.Now() - int64(time.Since(t)) }

// constantPeriod is the time between two arrivals, cut to whole nanoseconds as k6's executor does it.
func constantPeriod(c *executor.ConstantArrivalRateConfig) int64 {
	period, _ := new(big.Rat).SetFrac64(int64(c.TimeUnit.TimeDuration()), c.Rate.Int64).Float64()
	return int64(period)
}

// constantSlots are those of constant-arrival-rate: the counter of iterations identifies the slot, as long as k6 has dropped
// none. From then on an iteration's slot is not known, and the latest one before now stands for it: its lateness shows no more
// than a period, which is why the count of dropped arrivals goes with the result.
type constantSlots struct {
	start, period int64
	dropped       func() uint64
}

func (s *constantSlots) due(state *lib.State, now int64) int64 {
	if s.dropped() > 0 {
		return now - (now-s.start)%s.period
	}
	return min(now, s.start+s.period*int64(state.GetScenarioGlobalVUIter())) //gosec:disable G115 -- a count, far below the limit
}

// rampSlots are those of ramping-arrival-rate. k6 counts its time from a moment that it does not show: the earliest that
// any iteration's start allows is taken for it.
type rampSlots struct {
	dropped  func() uint64
	schedule schedule.Schedule

	mu    sync.Mutex
	start int64
}

func newRampSlots(c *executor.RampingArrivalRateConfig, dropped func() uint64) *rampSlots {
	unit := c.TimeUnit.TimeDuration()
	plan := schedule.Plan{StartRate: schedule.Rate{Events: c.StartRate.Int64, Per: unit}}
	for _, stage := range c.Stages {
		plan.Stages = append(plan.Stages, schedule.Stage{
			Target: schedule.Rate{Events: stage.Target.Int64, Per: unit}, Duration: stage.Duration.TimeDuration(),
		})
	}
	ramp, err := plan.Schedule()
	if err != nil { // k6 allows stages that never send anything
		return nil
	}
	return &rampSlots{dropped: dropped, schedule: ramp, start: 1<<63 - 1}
}

func (s *rampSlots) due(state *lib.State, now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.schedule.At(state.GetScenarioGlobalVUIter())
	if !ok {
		return now
	}
	s.start = min(s.start, now-int64(at))
	if s.dropped() > 0 {
		latest := schedule.Until(s.schedule, time.Duration(now-s.start))
		if at, ok = s.schedule.At(max(latest, 1) - 1); !ok {
			return now
		}
	}
	return min(now, s.start+int64(at))
}

// dropped is how many arrivals k6 has dropped, some 50 ms ago.
func (r *run) dropped() uint64 {
	state := r.state.Load()
	if state == nil {
		return 0
	}
	return droppedSoFar(state.builtin.DroppedIterations)
}

// droppedSoFar reads k6's own count. k6 writes it under a lock that it does not lend; the word is read whole all the same.
//
//go:norace
func droppedSoFar(m *metrics.Metric) uint64 {
	sink, ok := m.Sink.(*metrics.CounterSink)
	if !ok {
		return 0
	}
	return uint64(sink.Value)
}

// arrival tells a script what its iteration was started for; undefined outside an open-arrival-rate scenario.
func (in *instance) arrival() any {
	a, ok := executors.FromContext(in.vu.Context())
	if !ok {
		return nil
	}
	return map[string]any{"due": ms(a.Due), "lag": ms(a.Started - a.Due), "index": a.Index}
}
