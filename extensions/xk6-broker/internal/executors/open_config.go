package executors

import (
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/lib/types"
	"gopkg.in/guregu/null.v3"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// Type is the name of the executor open-arrival-rate in a scenario.
const Type = "open-arrival-rate"

// defaultMaxQueue is far above the queue of a system that keeps up. Waiting arrivals take no
// memory.
const defaultMaxQueue = 100_000

// minLength is the shortest duration, as with k6's own executors.
const minLength = time.Second

// Config has the options of a scenario of open-arrival-rate.
type Config struct {
	executor.BaseConfig

	// Rate arrivals in every TimeUnit, for Duration ...
	Rate     null.Float         `json:"rate"`
	TimeUnit types.NullDuration `json:"timeUnit"` // 1s by default; of StartRate and Stages too
	Duration types.NullDuration `json:"duration"`

	// ... or from StartRate through all Stages.
	StartRate null.Float `json:"startRate"`
	Stages    []Stage    `json:"stages,omitempty"`

	// Arrivals is "constant", the default, or "poisson", drawn from Seed.
	Arrivals null.String `json:"arrivals"`
	Seed     null.Int    `json:"seed"`

	// PreAllocatedVUs exist from the start; more, up to MaxVUs, are initialised while arrivals
	// wait.
	PreAllocatedVUs null.Int `json:"preAllocatedVUs"`
	MaxVUs          null.Int `json:"maxVUs"`

	// MaxQueue is the number of waiting arrivals in this process that aborts the test if exceeded.
	MaxQueue null.Int `json:"maxQueue"`
}

// Stage changes the rate to Target in every TimeUnit, linearly over Duration.
type Stage struct {
	Duration types.NullDuration `json:"duration"`
	Target   null.Float         `json:"target"`
}

var _ lib.ExecutorConfig = &Config{}

func newConfig(name string) *Config { return &Config{BaseConfig: executor.NewBaseConfig(name, Type)} }

// Schedule returns the arrivals of the whole scenario, and of produce with these options.
func (c *Config) Schedule() (schedule.Schedule, error) {
	unit := time.Second
	if c.TimeUnit.Valid {
		unit = c.TimeUnit.TimeDuration()
	}
	if errs := checkPositive("timeUnit", c.TimeUnit); errs != nil {
		return nil, errs[0]
	}
	var err error
	rate := func(name string, v null.Float) schedule.Rate {
		if !v.Valid {
			return schedule.Rate{}
		}
		r, e := schedule.NewRate(v.Float64, unit)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("option %q: %w", name, e))
		}
		return r
	}
	p := schedule.Plan{
		Rate: rate("rate", c.Rate), StartRate: rate("startRate", c.StartRate), Duration: c.Duration.TimeDuration(),
		Arrivals: c.Arrivals.String, Seed: uint64(c.Seed.Int64), //gosec:disable G115 -- the option has limits
	}
	for i, s := range c.Stages {
		if !s.Target.Valid || !s.Duration.Valid {
			err = errors.Join(err, fmt.Errorf("option %q: stage %d needs a target and a duration", "stages", i+1))
		}
		target := rate(fmt.Sprintf("stages[%d].target", i), s.Target)
		p.Stages = append(p.Stages, schedule.Stage{Target: target, Duration: s.Duration.TimeDuration()})
	}
	if err != nil {
		return nil, err
	}
	return p.Schedule()
}

// arrivals returns the arrivals of a segment, for one goroutine.
func (c *Config) arrivals(et *lib.ExecutionTuple) (schedule.Schedule, error) {
	all, err := c.Schedule()
	if err != nil {
		return nil, err
	}
	return Part{et}.Share().Of(all), nil
}

// length returns the time in which arrivals come.
func (c *Config) length() time.Duration {
	d := c.Duration.TimeDuration()
	for _, s := range c.Stages {
		d += s.Duration.TimeDuration()
	}
	return d
}

// Validate returns all errors in the options.
func (c *Config) Validate() []error {
	errs := c.BaseConfig.Validate()
	_, err := c.Schedule()
	switch {
	case err != nil:
		errs = append(errs, err)
	case len(c.Stages) == 0 && !c.Duration.Valid:
		errs = append(errs, errors.New(`option "duration" is missing`))
	case c.length() < minLength:
		errs = append(errs, fmt.Errorf("the scenario lasts %v, which is less than %v", c.length(), minLength))
	}
	errs = append(errs, checkLeast("seed", c.Seed, 0)...)
	if c.Seed.Valid && c.Arrivals.String != "poisson" {
		errs = append(errs, errors.New(`option "seed" is given, but is only for arrivals: 'poisson'`))
	}
	if !c.PreAllocatedVUs.Valid {
		errs = append(errs, errors.New(`option "preAllocatedVUs" is missing`))
	}
	errs = append(errs, checkLeast("preAllocatedVUs", c.PreAllocatedVUs, 0)...)
	if c.MaxVUs.Valid && c.MaxVUs.Int64 < c.PreAllocatedVUs.Int64 {
		errs = append(errs, fmt.Errorf("option %q: %d is less than preAllocatedVUs, %d",
			"maxVUs", c.MaxVUs.Int64, c.PreAllocatedVUs.Int64))
	}
	if c.maxVUs() < 1 {
		errs = append(errs, errors.New(`option "maxVUs": there would be no VU`))
	}
	return append(errs, checkLeast("maxQueue", c.MaxQueue, 1)...)
}

func (c *Config) maxVUs() int64 {
	if c.MaxVUs.Valid {
		return c.MaxVUs.Int64
	}
	return c.PreAllocatedVUs.Int64
}

func (c *Config) maxQueue() uint64 {
	if c.MaxQueue.Valid {
		return uint64(c.MaxQueue.Int64) //gosec:disable G115 -- the option has limits
	}
	return defaultMaxQueue
}

// vus returns the VUs of a segment, at the start and at most. A segment has at least one, because
// it has arrivals also if maxVUs is less than the number of segments.
func (c *Config) vus(et *lib.ExecutionTuple) (planned, most int64) {
	return et.ScaleInt64(c.PreAllocatedVUs.Int64), max(1, et.ScaleInt64(c.maxVUs()))
}

// HasWork reports whether the segment has any arrivals.
func (c *Config) HasWork(et *lib.ExecutionTuple) bool {
	s, err := c.arrivals(et)
	if err != nil {
		return false
	}
	_, ok := s.At(0)
	return ok
}

// GetExecutionRequirements returns the VUs of a segment, and the time for which they are needed.
func (c *Config) GetExecutionRequirements(et *lib.ExecutionTuple) []lib.ExecutionStep {
	var planned, most int64
	if c.HasWork(et) {
		planned, most = c.vus(et)
	}
	return []lib.ExecutionStep{
		{PlannedVUs: uint64(planned), MaxUnplannedVUs: uint64(most - planned)},
		{TimeOffset: c.length() + c.GetGracefulStop() + mayWait()},
	}
}

// GetDescription returns a line about the segment's part.
func (c *Config) GetDescription(et *lib.ExecutionTuple) string {
	s, err := c.arrivals(et)
	if err != nil {
		return err.Error()
	}
	planned, most := c.vus(et)
	return fmt.Sprintf("up to %.2f iterations/s for %v (VUs: %d-%d)",
		schedule.Peak(s), c.length(), planned, max(planned, most))
}

// NewExecutor makes the executor of a segment.
func (c *Config) NewExecutor(es *lib.ExecutionState, logger *logrus.Entry) (lib.Executor, error) {
	m, err := RegisterMetrics(es.Test.Registry)
	if err != nil {
		return nil, err
	}
	return &openArrivalRate{base: newBase(c, es, logger), config: c, metrics: m, sleep: machine.Until}, nil
}
