package executors

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/metrics"
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
		timer := time.AfterFunc(limit.TimeDuration()+e.config.GetGracefulStop(), func() { stop(nil) })
		defer timer.Stop()
	}
	scenario := &lib.ScenarioState{Name: e.config.Name, Executor: ProducersType, StartTime: time.Now(), ProgressFn: noProgress}
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
	stop(nil)
	<-idle // the VU is given back
	return failure
}
