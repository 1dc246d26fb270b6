package executors

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producers is k6's executor producers: one VU in each process of the test that calls its function once, whose loops take the share of the process.
type producers struct {
	*executor.BaseExecutor

	config *ProducersConfig
	state  *lib.ExecutionState
	logger *logrus.Entry
}

var _ lib.Executor = &producers{}

// Run runs the scenario to its end. Its error ends the test.
func (e *producers) Run(parent context.Context, _ chan<- metrics.SampleContainer) (failure error) {
	b := barrierOf(e.state)
	defer b.finish(e.config.Name)
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	if limit := e.config.MaxDuration; limit.Valid {
		over := time.AfterFunc(limit.TimeDuration()+e.config.GetGracefulStop(), func() { stop(nil) })
		defer over.Stop()
	}
	began := driver.Now()
	scenario := &lib.ScenarioState{Name: e.config.Name, Executor: ProducersType, StartTime: time.Now(), ProgressFn: func() (float64, []string) {
		return e.progress(time.Duration(driver.Now() - began))
	}}
	show(e.GetProgress(), scenario.ProgressFn, 0)
	vu, err := e.state.GetPlannedVU(e.logger, true)
	if err != nil {
		return err
	}
	idle := make(chan struct{})
	segment := e.state.ExecutionTuple
	active := vu.Activate(&lib.VUActivationParams{
		RunContext: Part{segment}.in(lib.WithScenarioState(ctx, scenario)),
		Scenario:   e.config.Name,
		Exec:       e.config.GetExec(),
		Env:        e.config.Env,
		Tags:       e.config.Tags,
		DeactivateCallback: func(vu lib.InitializedVU) {
			e.state.ReturnVU(vu, true)
			close(idle)
		},
		GetNextIterationCounters: func() (local, global uint64) { return 0, uint64(segment.SegmentIndex) }, //gosec:disable G115 -- not negative
	})
	iterate(ctx, e.state, e.logger, active, func(err error) {
		failure = err
		b.aborted.Store(true)
	})
	how, took := statusDone, time.Duration(driver.Now()-began)
	if ctx.Err() != nil || failure != nil {
		how = statusInterrupted
	}
	stop(nil)
	<-idle // the VU is given back
	show(e.GetProgress(), func() (float64, []string) {
		_, right := e.progress(took)
		return 1, right
	}, how)
	return failure
}

// progress is how far the scenario is, of its longest, and what is shown of it.
func (e *producers) progress(spent time.Duration) (done float64, right []string) {
	shown := spent.Truncate(resolution(spent)).String()
	if limit := e.config.MaxDuration; limit.Valid {
		done = min(1, spent.Seconds()/limit.TimeDuration().Seconds())
		shown += "/" + limit.TimeDuration().String()
	}
	return done, []string{"1 VU", fmt.Sprint(shown)}
}
