package executors

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"
)

// ProducersType is the name of the executor of producers in a scenario.
const ProducersType = "producers"

// ProducersConfig has the options of a scenario of producers.
type ProducersConfig struct {
	executor.BaseConfig

	// MaxDuration is the limit of the function; without it there is none.
	MaxDuration types.NullDuration `json:"maxDuration"`
}

var _ lib.ExecutorConfig = &ProducersConfig{}

func newProducersConfig(name string) *ProducersConfig {
	return &ProducersConfig{BaseConfig: executor.NewBaseConfig(name, ProducersType)}
}

// Validate returns all errors in the options.
func (c *ProducersConfig) Validate() []error {
	return append(c.BaseConfig.Validate(), checkPositive("maxDuration", c.MaxDuration)...)
}

// HasWork reports that each segment has a share.
func (c *ProducersConfig) HasWork(*lib.ExecutionTuple) bool { return true }

// GetExecutionRequirements returns one VU in each process.
func (c *ProducersConfig) GetExecutionRequirements(*lib.ExecutionTuple) []lib.ExecutionStep {
	steps := []lib.ExecutionStep{eachProcess()}
	if c.MaxDuration.Valid {
		steps = append(steps, lib.ExecutionStep{TimeOffset: c.MaxDuration.TimeDuration() + c.GetGracefulStop()})
	}
	return steps
}

// GetDescription returns a line about the scenario.
func (c *ProducersConfig) GetDescription(*lib.ExecutionTuple) string {
	return "1 iteration in each process"
}

// NewExecutor makes the executor of a segment.
func (c *ProducersConfig) NewExecutor(es *lib.ExecutionState, logger *logrus.Entry) (lib.Executor, error) {
	return &producers{newBase(c, es, logger), c}, nil
}

// producers is k6's executor producers: one VU in each process that calls its function once.
type producers struct {
	base

	config *ProducersConfig
}

var _ lib.Executor = &producers{}

// Run runs the scenario. Its error ends the test.
func (e *producers) Run(parent context.Context, _ chan<- metrics.SampleContainer) error {
	defer barrierOf(e.state).finish(e.config.Name)
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	if limit := e.config.MaxDuration; limit.Valid {
		timer := time.AfterFunc(limit.TimeDuration()+e.config.GetGracefulStop(), func() { stop(nil) })
		defer timer.Stop()
	}
	vu, err := e.state.GetPlannedVU(e.logger, true)
	if err != nil {
		return err
	}
	vuContext := Part{e.state.ExecutionTuple}.in(lib.WithScenarioState(ctx, newScenario(e.config.Name, ProducersType)))
	index := uint64(e.state.ExecutionTuple.SegmentIndex) //gosec:disable G115 -- not negative
	next := func() (local, global uint64) { return 0, index }
	idle := make(chan struct{})
	active := activate(vuContext, vu, e.config.BaseConfig, next, func(vu lib.InitializedVU) {
		e.state.ReturnVU(vu, true)
		close(idle)
	})
	end := &abortion{state: e.state, stop: stop}
	end.iterate(ctx, e.logger, active)
	stop(nil)
	<-idle // the VU is returned
	return end.err
}
