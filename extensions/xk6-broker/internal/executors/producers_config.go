package executors

import (
	"fmt"
	"strings"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/lib/types"
)

// ProducersType is the name of the executor of producers in a scenario.
const ProducersType = "producers"

// ProducersConfig is the options of a scenario of producers.
type ProducersConfig struct {
	executor.BaseConfig

	// MaxDuration is how long the function may take; as long as it does where absent.
	MaxDuration types.NullDuration `json:"maxDuration"`
}

var _ lib.ExecutorConfig = &ProducersConfig{}

func newProducersConfig(name string) *ProducersConfig {
	return &ProducersConfig{BaseConfig: executor.NewBaseConfig(name, ProducersType)}
}

// Validate tells all that is wrong.
func (c *ProducersConfig) Validate() []error {
	errs := c.BaseConfig.Validate()
	if c.MaxDuration.Valid && c.MaxDuration.TimeDuration() <= 0 {
		errs = append(errs, fmt.Errorf("option %q: %v is not more than 0", "maxDuration", c.MaxDuration.TimeDuration()))
	}
	return errs
}

// HasWork reports that each segment has a share.
func (c *ProducersConfig) HasWork(*lib.ExecutionTuple) bool { return true }

// GetExecutionRequirements tells k6 to initialise one VU in each process.
func (c *ProducersConfig) GetExecutionRequirements(*lib.ExecutionTuple) []lib.ExecutionStep {
	steps := []lib.ExecutionStep{eachProcess()}
	if c.MaxDuration.Valid {
		steps = append(steps, lib.ExecutionStep{TimeOffset: c.MaxDuration.TimeDuration() + c.GetGracefulStop()})
	}
	return steps
}

// GetDescription says in one line what the segment is going to run.
func (c *ProducersConfig) GetDescription(*lib.ExecutionTuple) string {
	var facts []string
	if c.MaxDuration.Valid {
		facts = append(facts, fmt.Sprintf("maxDuration: %v", c.MaxDuration.TimeDuration()))
	}
	if c.Exec.Valid {
		facts = append(facts, "exec: "+c.Exec.String)
	}
	if c.StartTime.Duration > 0 {
		facts = append(facts, fmt.Sprintf("startTime: %v", c.StartTime.Duration))
	}
	if c.MaxDuration.Valid && c.GracefulStop.Duration > 0 {
		facts = append(facts, fmt.Sprintf("gracefulStop: %v", c.GracefulStop.Duration))
	}
	if len(facts) == 0 {
		return "1 iteration in each process"
	}
	return "1 iteration in each process (" + strings.Join(facts, ", ") + ")"
}

// NewExecutor makes the executor of a segment.
func (c *ProducersConfig) NewExecutor(es *lib.ExecutionState, logger *logrus.Entry) (lib.Executor, error) {
	made.Store(es)
	return &producers{BaseExecutor: executor.NewBaseExecutor(c, es, logger), config: c, state: es, logger: logger}, nil
}
