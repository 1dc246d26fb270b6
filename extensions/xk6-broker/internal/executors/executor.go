// Package executors is three executors for k6: open-arrival-rate, producers and consumers.
//
// In open-arrival-rate iterations start when a schedule says, and an arrival that finds no VU free waits for one, with its due time kept,
// instead of being dropped.
//
// A due arrival that waits is late, and is meant to be seen late: whatever measures from [Arrival].Due has the wait in it. When the
// scenario's duration ends, the arrivals that still wait are served within gracefulStop; those that cannot be are counted and
// reported.
//
// In consumers VUs loop until all else is over and everything that was sent has arrived. The schedules of open-arrival-rate begin when they
// are ready.
//
// k6 divides the VUs of a test among its processes, by their execution segments. Scenarios of producers, and those of consumers that do not say how many
// VUs they have, have one VU in each process, and it is what its loops send and receive that is divided, see [Part].
package executors

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// openArrivalRate runs one scenario, as far as this process has a share in it.
type openArrivalRate struct {
	*executor.BaseExecutor

	config  *Config
	state   *lib.ExecutionState
	logger  *logrus.Entry
	metrics *Metrics
	sleep   func(ctx context.Context, until int64) error // [machine.Until], but under virtual time
}

var _ lib.Executor = &openArrivalRate{}

// Run runs the scenario to its end. Its error ends the test.
func (e *openArrivalRate) Run(parent context.Context, out chan<- metrics.SampleContainer) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	defer barrierOf(e.state).finish(e.config.Name)
	shares := make([]*share, 3)
	for i := range shares {
		var err error
		if shares[i], err = newShare(e.config, e.state.ExecutionTuple); err != nil {
			return err
		}
	}
	line := newLine(shares[0], shares[1], e.sleep)
	tally := newTally(e.config.Name, line, e.tags())
	scenario := &lib.ScenarioState{Name: e.config.Name, Executor: Type}
	var failure error
	var failed sync.Once
	p := &pool{
		ctx: lib.WithScenarioState(ctx, scenario), config: e.config, state: e.state, logger: e.logger, line: line, tally: tally,
		short: make(chan struct{}, 1),
		abort: func(err error) {
			failed.Do(func() {
				failure = err
				barrierOf(e.state).aborted.Store(true)
				stop(err)
			})
		},
	}
	planned, most := e.config.vus(e.state.ExecutionTuple)

	defer p.activation.Wait() // every VU is given back
	defer stop(nil)
	for range planned {
		vu, err := e.state.GetPlannedVU(e.logger, false)
		if err != nil {
			stop(err)
			line.begin(driver.Now()) // those that were added already see the end
			p.loops.Wait()
			return err
		}
		p.add(vu)
	}
	start, turned := barrierOf(e.state).awaitTurn(ctx, e.state, e.config.GetStartTime(), e.logger)
	interrupted := turned != nil
	if interrupted {
		start = driver.Now()
	}
	scenario.ProgressFn = func() (float64, []string) {
		return min(1, max(0, float64(driver.Now()-start)/float64(e.config.length()))), nil
	}
	scenario.StartTime = time.Now().Add(time.Duration(start - driver.Now()))
	end := start + int64(e.config.length())
	limit := time.AfterFunc(e.config.length()+e.config.GetGracefulStop(), func() { stop(nil) })
	defer limit.Stop()
	flusher := startFlusher(e.metrics, tally, out, samples.BudgetFor(Planned(e.state)))
	p.start = start
	line.begin(start)
	if interrupted {
		line.agenda.stop(start - 1) // nothing was due
	}

	serving, served := context.WithCancel(ctx)
	defer served()
	var watchers sync.WaitGroup
	watchers.Go(func() { p.grow(serving, most-planned) })
	watchers.Go(func() { p.guard(serving, shares[2]) })
	select {
	case <-line.finished:
	case <-ctx.Done():
	}
	if ctx.Err() != nil && !interrupted {
		line.agenda.stop(driver.Now()) // what comes later was not to be served
	}
	served()
	watchers.Wait()
	p.loops.Wait()
	_ = machine.Timer(ctx, end) // the last arrival may be over before the scenario is
	stop(nil)
	tally.finish()
	flusher.finish()
	e.report(tally.totals(), p)
	return failure
}

// report logs a lack of VUs, and arrivals that were not served.
func (e *openArrivalRate) report(t ScenarioTotals, p *pool) {
	e.logger.Debugf("%d arrivals were due, %d were started; at most %d waited", t.Due, t.Started, t.MaxQueue)
	if text := p.insufficient(t); text != "" {
		e.logger.Warn(text)
	}
	if t.Unserved > 0 {
		e.logger.Warnf("%d of %d arrivals that were due were never started: the scenario ended with them waiting for one of %d VUs",
			t.Unserved, t.Due, p.allocated.Load())
	}
}

// tags are those of all samples of the scenario.
func (e *openArrivalRate) tags() *metrics.TagSet {
	tags := e.state.Test.RunTags.WithTagsFromMap(e.config.Tags)
	if e.state.Test.Options.SystemTags.Has(metrics.TagScenario) {
		tags = tags.With("scenario", e.config.Name)
	}
	return tags
}

// noProgress is the progress of a scenario without a known length.
func noProgress() (float64, []string) { return 0, nil }
