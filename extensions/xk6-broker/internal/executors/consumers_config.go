package executors

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/lib/types"
	"gopkg.in/guregu/null.v3"
)

// ConsumersType is the name of the executor of consumers in a scenario.
const ConsumersType = "consumers"

// ConsumersConfig is the options of a scenario of consumers.
type ConsumersConfig struct {
	executor.BaseConfig

	// VUs consume side by side, in all processes together; where absent each process has one, whose loops take the share of the process.
	VUs null.Int `json:"vus"`

	// Duration is how long they go on at least, also when all other scenarios are over: for producers that are in another process.
	Duration types.NullDuration `json:"duration"`
}

var _ lib.ExecutorConfig = &ConsumersConfig{}

// configured is whether the script has a scenario of consumers, which others may wait for: k6 asks each scenario by itself for how long it
// needs its VUs.
var configured atomic.Bool

// mayWait is how much later than planned a scenario may begin.
func mayWait() time.Duration {
	if configured.Load() {
		return readyWithin
	}
	return 0
}

func newConsumersConfig(name string) *ConsumersConfig {
	configured.Store(true)
	return &ConsumersConfig{BaseConfig: executor.NewBaseConfig(name, ConsumersType)}
}

// Validate tells all that is wrong.
func (c *ConsumersConfig) Validate() []error {
	errs := c.BaseConfig.Validate()
	if c.VUs.Valid && c.VUs.Int64 < 1 {
		errs = append(errs, fmt.Errorf("option %q: %d is not 1 or more", "vus", c.VUs.Int64))
	}
	if c.Duration.Valid && c.Duration.TimeDuration() <= 0 {
		errs = append(errs, fmt.Errorf("option %q: %v is not more than 0", "duration", c.Duration.TimeDuration()))
	}
	return errs
}

// vus are those that a segment has.
func (c *ConsumersConfig) vus(et *lib.ExecutionTuple) int64 {
	if !c.VUs.Valid {
		return 1
	}
	return et.ScaleInt64(c.VUs.Int64)
}

// part is what loops have in one of its VUs.
func (c *ConsumersConfig) part(et *lib.ExecutionTuple) Part {
	if c.VUs.Valid {
		return Part{}
	}
	return Part{et}
}

// HasWork reports whether the segment has any of the VUs.
func (c *ConsumersConfig) HasWork(et *lib.ExecutionTuple) bool { return c.vus(et) > 0 }

// GetExecutionRequirements tells k6 how many VUs to initialise. They are needed until the others are over, whenever that is.
func (c *ConsumersConfig) GetExecutionRequirements(et *lib.ExecutionTuple) []lib.ExecutionStep {
	step := lib.ExecutionStep{PlannedVUs: uint64(c.vus(et))} //gosec:disable G115 -- the option has limits
	if !c.VUs.Valid {
		step = eachProcess()
	}
	steps := []lib.ExecutionStep{step}
	if c.Duration.Valid {
		step.TimeOffset = c.Duration.TimeDuration()
		steps = append(steps, step)
	}
	return steps
}

// GetDescription says in one line what the segment is going to run.
func (c *ConsumersConfig) GetDescription(et *lib.ExecutionTuple) string {
	facts := make([]string, 0, 4)
	if c.Duration.Valid {
		facts = append(facts, fmt.Sprintf("at least %v", c.Duration.TimeDuration()))
	}
	if c.StartTime.Duration > 0 {
		facts = append(facts, fmt.Sprintf("startTime: %v", c.StartTime.Duration))
	}
	if c.GracefulStop.Duration > 0 {
		facts = append(facts, fmt.Sprintf("gracefulStop: %v", c.GracefulStop.Duration))
	}
	if c.Exec.Valid {
		facts = append(facts, "exec: "+c.Exec.String)
	}
	s := fmt.Sprintf("%d looping VUs until the others are over and everything has arrived", c.vus(et))
	if len(facts) > 0 {
		s += " (" + strings.Join(facts, ", ") + ")"
	}
	return s
}

// NewExecutor makes the executor of a segment.
func (c *ConsumersConfig) NewExecutor(es *lib.ExecutionState, logger *logrus.Entry) (lib.Executor, error) {
	if !c.Duration.Valid && len(others(es)) == 0 {
		return nil, errors.New("scenario " + c.Name + ": there is no scenario but of consumers, which end when all others are over: " +
			"give it a duration, or use one of k6's own executors")
	}
	made.Store(es)
	return &consumers{BaseExecutor: executor.NewBaseExecutor(c, es, logger), config: c, state: es, logger: logger}, nil
}

// others are the scenarios of the whole test that are none of consumers.
func others(es *lib.ExecutionState) (list []lib.ExecutorConfig) {
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() != ConsumersType {
			list = append(list, c)
		}
	}
	return list
}

// lasts is how long a scenario goes on at least, without what its executor grants its last iterations; one of so many iterations may be
// over at once.
func lasts(c lib.ExecutorConfig, et *lib.ExecutionTuple) time.Duration {
	var d time.Duration
	switch c := c.(type) {
	case *Config:
		return c.length()
	case executor.PerVUIterationsConfig, executor.SharedIterationsConfig:
		return 0
	case executor.ConstantVUsConfig:
		return c.Duration.TimeDuration()
	case *executor.ConstantArrivalRateConfig:
		return c.Duration.TimeDuration()
	case executor.RampingVUsConfig:
		for _, s := range c.Stages {
			d += s.Duration.TimeDuration()
		}
		return d
	case *executor.RampingArrivalRateConfig:
		for _, s := range c.Stages {
			d += s.Duration.TimeDuration()
		}
		return d
	}
	d, _ = lib.GetEndOffset(c.GetExecutionRequirements(et))
	return d
}
