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

// dueTimes has the due times of a VU's sends. The first send of an iteration was due when the iteration was,
// and each further one the iteration's lateness before its call. Without a schedule the loop is closed: due is 0.
type dueTimes struct {
	in        *instance
	iteration int64
	scenario  string
	slots     slots // of the scenario; nil without a schedule
	lag       int64 // of the iteration
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

// slots are the due times of a scenario's iterations.
type slots interface {
	due(state *lib.State, now int64) int64
}

// ramps are the schedules of k6's ramping-arrival-rate scenarios.
type ramps struct {
	mu     sync.Mutex
	shared map[string]*rampSlots // by scenario
}

// slotsOf returns the schedule of one of k6's own arrival-rate executors; nil for others.
func (r *run) slotsOf(config lib.ExecutorConfig, start time.Time) slots {
	switch c := config.(type) {
	case *executor.ConstantArrivalRateConfig:
		return &constantSlots{start: driver.Now() - int64(time.Since(start)), period: constantPeriod(c), dropped: r.dropped}
	case *executor.RampingArrivalRateConfig:
		r.ramps.mu.Lock()
		defer r.ramps.mu.Unlock()
		ramp, ok := r.ramps.shared[c.Name]
		if !ok {
			ramp = newRampSlots(c, r.dropped)
			r.ramps.shared[c.Name] = ramp
		}
		if ramp != nil {
			return ramp
		}
	}
	return nil
}

// constantPeriod returns the time between two arrivals, in whole nanoseconds as k6's executor has it.
func constantPeriod(c *executor.ConstantArrivalRateConfig) int64 {
	period, _ := new(big.Rat).SetFrac64(int64(c.TimeUnit.TimeDuration()), c.Rate.Int64).Float64()
	return int64(period)
}

// constantSlots are the due times of constant-arrival-rate, by the counter of iterations. After k6 has dropped
// one, the due time is taken as the latest slot before now, and the dropped arrivals are a reason against the run.
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

// rampSlots are the due times of ramping-arrival-rate. Its start is taken as the earliest that the iterations
// allow, because k6 does not show it.
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
	if err != nil { // k6 allows stages without arrivals
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

// dropped returns the number of arrivals that k6 dropped, as of some 50 ms ago.
func (r *run) dropped() uint64 {
	state := r.state.Load()
	if state == nil {
		return 0
	}
	return droppedSoFar(state.builtin.DroppedIterations)
}

// droppedSoFar reads k6's own count, one word. A module cannot take the lock under which k6 writes it.
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
