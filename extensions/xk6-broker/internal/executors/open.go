package executors

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// openArrivalRate is k6's executor open-arrival-rate: one scenario, in this process.
type openArrivalRate struct {
	base

	config  *Config
	metrics *Metrics
	sleep   func(ctx context.Context, until int64) error // [machine.Until]; another under virtual time
}

var _ lib.Executor = &openArrivalRate{}

// pool is the VUs of a scenario while it runs.
type pool struct {
	*openArrivalRate
	*abortion

	ctx   context.Context // of all iterations
	line  *line
	tally *tally
	start int64 // of the schedule

	short      chan struct{} // the last idle VU has gone to work
	allocated  atomic.Int64
	busy       atomic.Int64
	spent      atomic.Int64 // by iterations, in ns
	loops      sync.WaitGroup
	activation sync.WaitGroup
}

// Run runs the scenario. Its error ends the test.
func (e *openArrivalRate) Run(parent context.Context, out chan<- metrics.SampleContainer) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	defer barrierOf(e.state).finish(e.config.Name)
	all, err := e.config.Schedule()
	if err != nil {
		return err
	}
	line := newLine(all, Part{e.state.ExecutionTuple}.Share(), e.sleep)
	scenario := &lib.ScenarioState{Name: e.config.Name, Executor: Type}
	p := &pool{
		openArrivalRate: e, abortion: &abortion{state: e.state, stop: stop}, ctx: lib.WithScenarioState(ctx, scenario),
		line: line, tally: newTally(e.config.Name, line, e.metrics, e.tags()), short: make(chan struct{}, 1),
	}
	planned, most := e.config.vus(e.state.ExecutionTuple)
	defer p.activation.Wait() // all VUs are returned
	defer stop(nil)
	for range planned {
		vu, err := e.state.GetPlannedVU(e.logger, false)
		if err != nil {
			stop(err)
			line.begin(driver.Now()) // the VUs that were added see the end
			p.loops.Wait()
			return err
		}
		p.add(vu)
	}
	start, err := barrierOf(e.state).awaitTurn(ctx, e.state, e.config.GetStartTime(), e.logger)
	interrupted := err != nil
	if interrupted {
		start = driver.Now()
	}
	length := e.config.length()
	scenario.ProgressFn = func() (float64, []string) {
		return min(1, max(0, float64(driver.Now()-start)/float64(length))), nil
	}
	scenario.StartTime = time.Now().Add(time.Duration(start - driver.Now()))
	limit := time.AfterFunc(length+e.config.GetGracefulStop(), func() { stop(nil) })
	defer limit.Stop()
	p.tally.start(out, samples.BudgetFor(Planned(e.state)))
	p.start = start
	line.begin(start)
	if interrupted {
		line.agenda.stop(start - 1) // nothing was due
	}
	p.serve(most-planned, interrupted)
	_ = machine.Timer(ctx, start+int64(length)) // also if the last arrival is over
	stop(nil)
	p.tally.finish()
	p.report(p.tally.totals())
	return p.err
}

// serve returns when all arrivals were served, or ctx has ended and the VUs are idle.
func (p *pool) serve(more int64, interrupted bool) {
	serving, stop := context.WithCancel(p.ctx)
	defer stop()
	var watchers sync.WaitGroup
	watchers.Go(func() { p.grow(serving, more) })
	watchers.Go(func() { p.guard(serving) })
	select {
	case <-p.line.finished:
	case <-p.ctx.Done():
	}
	if p.ctx.Err() != nil && !interrupted {
		p.line.agenda.stop(driver.Now()) // later arrivals are not due
	}
	stop()
	watchers.Wait()
	p.loops.Wait()
}

// add activates a VU. It serves the line until the last arrival, or until ctx ends.
func (p *pool) add(vu lib.InitializedVU) {
	s := &seat{Arrival: Arrival{Scenario: p.config.Name}, call: make(chan struct{}, 1), free: driver.Now()}
	p.activation.Add(1)
	next := func() (local, global uint64) { return s.local, s.Index }
	ctx := context.WithValue(p.ctx, seatKey{}, s)
	active := activate(ctx, vu, p.config.BaseConfig, next, func(vu lib.InitializedVU) {
		p.state.ReturnVU(vu, false)
		p.activation.Done()
	})
	shard := uint32(p.allocated.Add(1)) //gosec:disable G115 -- any number
	p.loops.Go(func() {
		for p.line.take(p.ctx, s) {
			if p.busy.Add(1) == p.allocated.Load() {
				select {
				case p.short <- struct{}{}:
				default: // it has a value
				}
			}
			s.Started = driver.Now()
			p.tally.lag.Record(shard, s.Started-s.Due)
			p.state.ModCurrentlyActiveVUsCount(+1)
			s.running = true
			p.iterate(p.ctx, p.logger, active)
			s.running = false
			p.state.ModCurrentlyActiveVUsCount(-1)
			s.free = driver.Now()
			p.spent.Add(s.free - s.Started)
			p.busy.Add(-1)
		}
	})
}

// grow initialises up to so many further VUs, one at a time, while arrivals wait.
func (p *pool) grow(ctx context.Context, more int64) {
	for ; more > 0; more-- {
		if p.lack(ctx) != nil {
			return
		}
		vu, err := p.state.GetUnplannedVU(p.ctx, p.logger)
		if err != nil {
			if ctx.Err() == nil {
				p.logger.WithError(err).Error("Error while allocating unplanned VU")
			}
			continue
		}
		p.add(vu)
	}
}

// lack returns when an arrival is due and no VU is free.
func (p *pool) lack(ctx context.Context) error {
	for {
		// In this order no lock is needed: an arrival that was due before all VUs were busy, and is
		// not taken afterwards, waited while they were.
		now := driver.Now()
		busy := p.busy.Load() == p.allocated.Load()
		due := p.line.nextDue.Load()
		switch {
		case !busy:
			select {
			case <-p.short:
			case <-ctx.Done():
				return ctx.Err()
			}
		case due <= now:
			return nil
		default:
			if err := machine.Timer(ctx, due); err != nil {
				return err
			}
		}
	}
}

// guard aborts the test when more than maxQueue arrivals wait.
func (p *pool) guard(ctx context.Context) {
	most := p.config.maxQueue()
	ahead := p.line.fork()
	for {
		// At this time one too many waits, if no arrival is taken until then.
		at, ok := ahead.At(p.line.taken.Load() + most)
		if !ok || machine.Timer(ctx, p.start+int64(at)) != nil {
			return
		}
		waiting := p.line.waiting()
		if waiting <= most {
			continue
		}
		err := fmt.Errorf("scenario %s: %d arrivals are due and not started, more than option \"maxQueue\" allows, "+
			"which is %d; %d of %d VUs are busy: give it more VUs (maxVUs), a lower rate, or a greater maxQueue",
			p.config.Name, waiting, most, p.busy.Load(), p.allocated.Load())
		err = errext.WithExitCodeIfNone(err, exitcodes.ScriptAborted)
		p.abort(errext.WithAbortReasonIfNone(err, errext.AbortedByScriptAbort))
		return
	}
}

// report logs a lack of VUs, and arrivals that were not served.
func (p *pool) report(t ScenarioTotals) {
	if t.Started > 0 {
		arrivals, _ := p.config.Schedule()                       // it is valid
		mean := time.Duration(p.spent.Load() / int64(t.Started)) //gosec:disable G115 -- a count
		if busy := math.Ceil(schedule.Peak(arrivals) * mean.Seconds()); busy > float64(p.allocated.Load()) {
			p.logger.Warnf("Insufficient VUs, reached %d active VUs and cannot initialize more. "+
				"At up to %.4g arrivals/s and %v an iteration on average, %.0f are busy: raise maxVUs",
				p.allocated.Load(), schedule.Peak(arrivals), mean.Round(10*time.Microsecond), busy)
		}
	}
	if t.Unserved > 0 {
		p.logger.Warnf("%d of %d arrivals that were due were never started: "+
			"the scenario ended with them waiting for one of %d VUs",
			t.Unserved, t.Due, p.allocated.Load())
	}
}

// tags returns the tags of all samples of the scenario.
func (e *openArrivalRate) tags() *metrics.TagSet {
	tags := e.state.Test.RunTags.WithTagsFromMap(e.config.Tags)
	if e.state.Test.Options.SystemTags.Has(metrics.TagScenario) {
		tags = tags.With("scenario", e.config.Name)
	}
	return tags
}
