package executors

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/lib/types"
	"gopkg.in/guregu/null.v3"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// Type is the name of the executor in a scenario.
const Type = "open-arrival-rate"

// defaultMaxQueue is many more than a system that keeps up ever lets wait. Waiting arrivals take no memory.
const defaultMaxQueue = 100_000

// Config is a scenario's options.
type Config struct {
	executor.BaseConfig

	// Rate arrivals in every TimeUnit, for Duration ...
	Rate     null.Float         `json:"rate"`
	TimeUnit types.NullDuration `json:"timeUnit"` // 1s where absent; of StartRate and Stages too
	Duration types.NullDuration `json:"duration"`

	// ... or from StartRate through all Stages.
	StartRate null.Float `json:"startRate"`
	Stages    []Stage    `json:"stages,omitempty"`

	// Arrivals is "constant", the default, or "poisson", drawn from Seed.
	Arrivals null.String `json:"arrivals"`
	Seed     null.Int    `json:"seed"`

	// PreAllocatedVUs are there from the start; more, up to MaxVUs, are initialised while arrivals wait.
	PreAllocatedVUs null.Int `json:"preAllocatedVUs"`
	MaxVUs          null.Int `json:"maxVUs"`

	// MaxQueue is how many arrivals may wait in this process before the test is given up.
	MaxQueue null.Int `json:"maxQueue"`
}

// Stage changes the rate to Target in every TimeUnit, linearly over Duration.
type Stage struct {
	Duration types.NullDuration `json:"duration"`
	Target   null.Float         `json:"target"`
}

var _ lib.ExecutorConfig = &Config{}

func newConfig(name string) *Config { return &Config{BaseConfig: executor.NewBaseConfig(name, Type)} }

// Register makes the executors known to k6. It may be called once.
func Register() {
	register(Type, newConfig, Config{Stages: []Stage{{}}})
	register(ConsumersType, newConsumersConfig, ConsumersConfig{})
	register(ProducersType, newProducersConfig, ProducersConfig{})
}

// register makes an executor known by a way to make its options and, for who errs, all options that there are.
func register[C lib.ExecutorConfig](name string, defaults func(scenario string) C, all any) {
	lib.RegisterExecutorConfigType(name, func(scenario string, raw []byte) (lib.ExecutorConfig, error) {
		c := defaults(scenario)
		if err := lib.StrictJSONUnmarshal(raw, c); err != nil {
			return nil, fmt.Errorf("scenario %s: %w", scenario, explain(err, name, all))
		}
		return c, nil
	})
}

// explain adds to the error about an unknown option which ones there are.
func explain(err error, executor string, all any) error {
	if !strings.Contains(err.Error(), "unknown field") {
		return err
	}
	var known []string
	fields := map[string]json.RawMessage{}
	text, _ := json.Marshal(all)
	if json.Unmarshal(text, &fields) == nil {
		for name := range fields {
			known = append(known, name)
		}
	}
	known = append(known, "options")
	slices.Sort(known)
	_, quoted, _ := strings.Cut(err.Error(), "unknown field ")
	return fmt.Errorf("%w%s: the options of %s are %s", err, driver.Suggest(strings.Trim(quoted, `"`), known), executor, strings.Join(known, ", "))
}

// plan is the schedule of the whole scenario, as all ways of driving load understand it.
func (c *Config) plan() (schedule.Plan, error) {
	unit := time.Second
	if c.TimeUnit.Valid {
		unit = c.TimeUnit.TimeDuration()
	}
	if unit <= 0 {
		return schedule.Plan{}, fmt.Errorf("option %q: %v is not more than 0", "timeUnit", unit)
	}
	p := schedule.Plan{Duration: c.Duration.TimeDuration(), Arrivals: c.Arrivals.String, Seed: uint64(c.Seed.Int64)} //gosec:disable G115 -- the option has limits
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
	p.Rate, p.StartRate = rate("rate", c.Rate), rate("startRate", c.StartRate)
	for i, s := range c.Stages {
		if !s.Target.Valid || !s.Duration.Valid {
			err = errors.Join(err, fmt.Errorf("option %q: stage %d needs a target and a duration", "stages", i+1))
		}
		name := fmt.Sprintf("stages[%d].target", i)
		p.Stages = append(p.Stages, schedule.Stage{Target: rate(name, s.Target), Duration: s.Duration.TimeDuration()})
	}
	return p, err
}

// length is how long arrivals come.
func (c *Config) length() time.Duration {
	d := c.Duration.TimeDuration()
	for _, s := range c.Stages {
		d += s.Duration.TimeDuration()
	}
	return d
}

// minLength is the shortest duration, as with k6's own executors.
const minLength = time.Second

// Validate tells all that is wrong.
func (c *Config) Validate() []error {
	errs := c.BaseConfig.Validate()
	plan, err := c.plan()
	if err == nil {
		_, err = plan.Schedule()
	}
	switch {
	case err != nil:
		errs = append(errs, err)
	case len(c.Stages) == 0 && !c.Duration.Valid:
		errs = append(errs, errors.New(`option "duration" is missing`))
	case c.length() < minLength:
		errs = append(errs, fmt.Errorf("the scenario lasts %v, which is less than %v", c.length(), minLength))
	}
	if c.Seed.Int64 < 0 {
		errs = append(errs, fmt.Errorf("option %q: %d is not 0 or more", "seed", c.Seed.Int64))
	}
	if c.Seed.Valid && c.Arrivals.String != "poisson" {
		errs = append(errs, fmt.Errorf("option %q is given, but without arrivals: 'poisson' nothing is drawn from it", "seed"))
	}
	if !c.PreAllocatedVUs.Valid {
		errs = append(errs, errors.New(`option "preAllocatedVUs" is missing`))
	} else if c.PreAllocatedVUs.Int64 < 0 {
		errs = append(errs, fmt.Errorf("option %q: %d is not 0 or more", "preAllocatedVUs", c.PreAllocatedVUs.Int64))
	}
	if c.MaxVUs.Valid && c.MaxVUs.Int64 < c.PreAllocatedVUs.Int64 {
		errs = append(errs, fmt.Errorf("option %q: %d is less than preAllocatedVUs, %d", "maxVUs", c.MaxVUs.Int64, c.PreAllocatedVUs.Int64))
	}
	if c.maxVUs() < 1 {
		errs = append(errs, errors.New(`option "maxVUs": there would be no VU to run anything`))
	}
	if c.MaxQueue.Valid && c.MaxQueue.Int64 < 1 {
		errs = append(errs, fmt.Errorf("option %q: %d is not 1 or more", "maxQueue", c.MaxQueue.Int64))
	}
	return errs
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

// vus is how many VUs an execution segment has, at the start and at most. A segment has its share of the arrivals even where
// maxVUs is too small for each segment to have one, so it always has one that can serve them.
func (c *Config) vus(et *lib.ExecutionTuple) (planned, most int64) {
	return et.ScaleInt64(c.PreAllocatedVUs.Int64), max(1, et.ScaleInt64(c.maxVUs()))
}

// HasWork reports whether the segment has any arrivals.
func (c *Config) HasWork(et *lib.ExecutionTuple) bool {
	s, err := newShare(c, et)
	if err != nil {
		return false
	}
	_, ok := s.at(0)
	return ok
}

// GetExecutionRequirements tells k6 how many VUs to initialise, and how many more there may be.
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

// GetDescription says in one line what the segment is going to run.
func (c *Config) GetDescription(et *lib.ExecutionTuple) string {
	s, err := newShare(c, et)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if len(c.Stages) > 0 {
		fmt.Fprintf(&b, "Up to %.2f iterations/s for %v over %d stages", schedule.Peak(s.schedule), c.length(), len(c.Stages))
	} else {
		fmt.Fprintf(&b, "%.2f iterations/s for %v", schedule.Peak(s.schedule), c.length())
	}
	planned, most := c.vus(et)
	facts := []string{fmt.Sprintf("maxVUs: %d", planned)}
	if most > planned {
		facts[0] = fmt.Sprintf("maxVUs: %d-%d", planned, most)
	}
	if c.Arrivals.String == "poisson" {
		facts = append(facts, fmt.Sprintf("arrivals: poisson, seed: %d", c.Seed.Int64))
	}
	facts = append(facts, fmt.Sprintf("maxQueue: %d", c.maxQueue()))
	if c.Exec.Valid {
		facts = append(facts, "exec: "+c.Exec.String)
	}
	if c.StartTime.Duration > 0 {
		facts = append(facts, fmt.Sprintf("startTime: %v", c.StartTime.Duration))
	}
	if c.GracefulStop.Duration > 0 {
		facts = append(facts, fmt.Sprintf("gracefulStop: %v", c.GracefulStop.Duration))
	}
	fmt.Fprintf(&b, " (%s)", strings.Join(facts, ", "))
	return b.String()
}

// NewExecutor makes the executor of a segment.
func (c *Config) NewExecutor(es *lib.ExecutionState, logger *logrus.Entry) (lib.Executor, error) {
	m, err := RegisterMetrics(es.Test.Registry)
	if err != nil {
		return nil, err
	}
	made.Store(es)
	return &openArrivalRate{
		BaseExecutor: executor.NewBaseExecutor(c, es, logger), config: c, state: es, logger: logger, metrics: m,
		sleep: machine.Until,
	}, nil
}
