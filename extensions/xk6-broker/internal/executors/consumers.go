package executors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"
	"gopkg.in/guregu/null.v3"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// ConsumersType is the name of the executor of consumers in a scenario.
const ConsumersType = "consumers"

// ConsumersConfig has the options of a scenario of consumers.
type ConsumersConfig struct {
	executor.BaseConfig

	// VUs is the number of VUs in all processes together. Without it each process has one, whose
	// loops have the share of the process.
	VUs null.Int `json:"vus"`

	// Duration is the least time that they run, for producers in another process.
	Duration types.NullDuration `json:"duration"`
}

var _ lib.ExecutorConfig = &ConsumersConfig{}

// configured is whether the script has a scenario of consumers. k6 asks each scenario by itself.
var configured atomic.Bool

// mayWait returns how much later than planned a scenario can begin.
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

// Validate returns all errors in the options.
func (c *ConsumersConfig) Validate() []error {
	errs := append(c.BaseConfig.Validate(), checkLeast("vus", c.VUs, 1)...)
	return append(errs, checkPositive("duration", c.Duration)...)
}

// vus returns the number of VUs of a segment.
func (c *ConsumersConfig) vus(et *lib.ExecutionTuple) int64 {
	if !c.VUs.Valid {
		return 1
	}
	return et.ScaleInt64(c.VUs.Int64)
}

// part returns the part of the loops in one of the VUs.
func (c *ConsumersConfig) part(et *lib.ExecutionTuple) Part {
	if c.VUs.Valid {
		return Part{}
	}
	return Part{et}
}

// HasWork reports whether the segment has any of the VUs.
func (c *ConsumersConfig) HasWork(et *lib.ExecutionTuple) bool { return c.vus(et) > 0 }

// GetExecutionRequirements returns the VUs of a segment. They are needed until the others are over.
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

// GetDescription returns a line about the segment's part.
func (c *ConsumersConfig) GetDescription(et *lib.ExecutionTuple) string {
	return fmt.Sprintf("%d VUs until the others are over and everything has arrived", c.vus(et))
}

// NewExecutor makes the executor of a segment.
func (c *ConsumersConfig) NewExecutor(es *lib.ExecutionState, logger *logrus.Entry) (lib.Executor, error) {
	if !c.Duration.Valid && len(others(es)) == 0 {
		return nil, errors.New("scenario " + c.Name + ": consumers end when all other scenarios are over, " +
			"and there is none: give it a duration, or use one of k6's own executors")
	}
	return &consumers{newBase(c, es, logger), c}, nil
}

// consumers is k6's executor consumers.
type consumers struct {
	base

	config *ConsumersConfig
}

var _ lib.Executor = &consumers{}

// crew is the VUs of a scenario of consumers while it runs.
type crew struct {
	*consumers
	*abortion

	barrier *barrier
	ctx     context.Context // of all iterations
	closing context.Context // ends when no more iterations begin
	arrived atomic.Pointer[Arrived]
	missing atomic.Int64 // VUs that are not ready
	loops   sync.WaitGroup
	active  sync.WaitGroup

	counting   sync.Mutex
	iterations *lib.SegmentedIndex
}

// Run runs the scenario. Its error ends the test.
func (e *consumers) Run(parent context.Context, _ chan<- metrics.SampleContainer) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	closing, end := context.WithCancel(ctx)
	defer end()
	scenario := newScenario(e.config.Name, ConsumersType)
	c := &crew{
		consumers: e, abortion: &abortion{state: e.state, stop: stop}, barrier: barrierOf(e.state),
		ctx: lib.WithScenarioState(ctx, scenario), closing: closing,
		iterations: lib.NewSegmentedIndex(e.state.ExecutionTuple),
	}
	defer c.barrier.consumers(e.config.Name).set() // ends all waits for them
	began := driver.Now()
	c.loops.Go(func() { c.barrier.announce(ctx, e.config.Name) })

	defer c.active.Wait() // all VUs are returned
	defer stop(nil)
	vus := e.config.vus(e.state.ExecutionTuple)
	c.missing.Store(vus)
	for range vus {
		vu, err := e.state.GetPlannedVU(e.logger, true)
		if err != nil {
			stop(err)
			c.loops.Wait()
			return err
		}
		c.add(vu)
	}
	_ = c.awaitEnd(ctx, began) // an error is the end of the test
	end()
	graceful := time.AfterFunc(e.config.GetGracefulStop(), func() { stop(nil) })
	defer graceful.Stop()
	c.loops.Wait()
	stop(nil)
	return c.err
}

// longWait is the time after which the log explains why consumers go on.
const longWait = 10 * time.Second

// awaitEnd returns when the last iterations can end, or with ctx's error: when all other scenarios
// are over and everything has arrived, in all processes, whose consumers can send on their
// messages.
func (c *crew) awaitEnd(ctx context.Context, began int64) error {
	if err := c.barrier.awaitOthers(ctx, c.state, began-int64(c.config.GetStartTime())); err != nil {
		return err
	}
	s := c.barrier.siblings(ctx)
	if s != nil {
		s.Reach(Spent[0])
	}
	if d := c.config.Duration; d.Valid {
		if err := machine.Timer(ctx, began+int64(d.TimeDuration())); err != nil {
			return err
		}
	}
	long := time.AfterFunc(longWait, func() {
		c.logger.Infof("all other scenarios are over; scenario %s goes on while messages arrive or are settled, "+
			"or other processes send (Ctrl-C ends that)", c.config.Name)
	})
	defer long.Stop()
	if s == nil {
		return c.awaitArrived(ctx)
	}
	for _, point := range Spent {
		s.Reach(point)
		if _, _ = s.Await(ctx, point); ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.awaitArrived(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitArrived returns when everything has arrived here.
func (c *crew) awaitArrived(ctx context.Context) error {
	if arrived := c.arrived.Load(); arrived != nil {
		return (*arrived)(ctx, c.barrier.idleSince)
	}
	return nil
}

// failurePause follows an iteration that failed, so that a VU does not spin while a broker is away.
const failurePause = 100 * time.Millisecond

// add activates a VU, which loops until the scenario is closing.
func (c *crew) add(vu lib.InitializedVU) {
	m := &Member{crew: c, idle: driver.Now()}
	c.barrier.join(m)
	c.active.Add(1)
	c.barrier.consuming.Add(1)
	ctx := context.WithValue(c.config.part(c.state.ExecutionTuple).in(c.ctx), memberKey{}, m)
	active := activate(ctx, vu, c.config.BaseConfig, c.nextIteration, func(vu lib.InitializedVU) {
		c.state.ReturnVU(vu, true)
		c.barrier.consuming.Add(-1)
		c.active.Done()
	})
	c.loops.Go(func() {
		defer c.barrier.leave(m)
		for c.closing.Err() == nil {
			ok := c.iterate(c.ctx, c.logger, active)
			m.setBusy(false)
			m.setReady() // it opened no consumer
			if !ok {
				_ = machine.Timer(c.closing, driver.Now()+int64(failurePause))
			}
		}
	})
}

// oneReady counts a VU that is ready.
func (c *crew) oneReady() {
	if c.missing.Add(-1) == 0 {
		c.barrier.consumers(c.config.Name).set()
	}
}

// nextIteration returns the number of an iteration in this process and in the test, from 0.
func (c *crew) nextIteration() (local, global uint64) {
	c.counting.Lock()
	defer c.counting.Unlock()
	scaled, unscaled := c.iterations.Next()
	return uint64(scaled - 1), uint64(unscaled - 1) //gosec:disable G115 -- they are counted from 1
}
