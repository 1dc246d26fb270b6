package executors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// consumers is k6's executor consumers: VUs that loop until all scenarios but those of consumers are over and everything that was sent has
// arrived. Who sends by open-arrival-rate, or by produce of the module, begins when they are ready.
type consumers struct {
	*executor.BaseExecutor

	config *ConsumersConfig
	state  *lib.ExecutionState
	logger *logrus.Entry
}

var _ lib.Executor = &consumers{}

// crew is the VUs of a scenario of consumers while it runs.
type crew struct {
	*consumers

	barrier *barrier
	ctx     context.Context // of all iterations
	abort   func(error)     // ends the test
	over    context.Context // ends when no further iteration is to begin
	arrived atomic.Pointer[Arrived]
	missing atomic.Int64 // VUs that are not ready
	loops   sync.WaitGroup
	active  sync.WaitGroup

	counting   sync.Mutex
	iterations *lib.SegmentedIndex
}

// Run runs the scenario to its end. Its error ends the test.
func (e *consumers) Run(parent context.Context, _ chan<- metrics.SampleContainer) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	over, end := context.WithCancel(ctx)
	defer end()
	scenario := &lib.ScenarioState{Name: e.config.Name, Executor: ConsumersType, StartTime: time.Now(), ProgressFn: noProgress}
	var failure error
	var failed sync.Once
	c := &crew{
		consumers: e, barrier: barrierOf(e.state), ctx: lib.WithScenarioState(ctx, scenario), over: over,
		iterations: lib.NewSegmentedIndex(e.state.ExecutionTuple),
		abort: func(err error) {
			failed.Do(func() {
				failure = err
				barrierOf(e.state).aborted.Store(true)
				stop(err)
			})
		},
	}
	// Whatever becomes of them, nobody waits for those who are no more.
	defer c.barrier.of(e.config.Name).set()
	began := driver.Now()
	vus := e.config.vus(e.state.ExecutionTuple)
	c.loops.Go(func() { c.barrier.announce(ctx, e.config.Name) })

	defer c.active.Wait() // every VU is given back
	defer stop(nil)
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
	_ = c.awaitEnd(ctx, began) // or the test has ended
	end()
	graceful := time.AfterFunc(e.config.GetGracefulStop(), func() { stop(nil) })
	defer graceful.Stop()
	c.loops.Wait()
	stop(nil)
	return failure
}

// longWait is how long consumers go on before somebody may wonder why.
const longWait = 10 * time.Second

// awaitEnd returns when the VUs are to begin no further iteration, or with ctx's error: when all others are over, everything that was sent has arrived, and both
// is so in all processes, whose consumers may send on what they got.
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
	still := "messages arrive or are settled"
	if s != nil {
		still = "other processes send, or " + still
	}
	long := time.AfterFunc(longWait, func() {
		c.logger.Infof("all other scenarios are over; scenario %s goes on while %s (Ctrl-C ends that)", c.config.Name, still)
	})
	defer long.Stop()
	if s != nil {
		if _, err := s.Await(ctx, Spent[0]); ctx.Err() != nil {
			return err
		}
	}
	if err := c.awaitArrived(ctx); err != nil || s == nil {
		return err
	}
	s.Reach(Spent[1])
	if _, err := s.Await(ctx, Spent[1]); ctx.Err() != nil {
		return err
	}
	return c.awaitArrived(ctx)
}

// awaitArrived returns when everything has arrived here.
func (c *crew) awaitArrived(ctx context.Context) error {
	if arrived := c.arrived.Load(); arrived != nil {
		return (*arrived)(ctx, c.barrier.idleSince)
	}
	return nil
}

// failurePause keeps a VU from spinning whose iterations fail at once, as while a broker is away.
const failurePause = 100 * time.Millisecond

// add activates a VU, which loops until the scenario is over, or until the crew's context ends.
func (c *crew) add(vu lib.InitializedVU) {
	m := &Member{crew: c, idle: driver.Now()}
	c.barrier.join(m)
	c.active.Add(1)
	c.barrier.consuming.Add(1)
	active := vu.Activate(&lib.VUActivationParams{
		RunContext: context.WithValue(c.config.part(c.state.ExecutionTuple).in(c.ctx), memberKey{}, m),
		Scenario:   c.config.Name,
		Exec:       c.config.GetExec(),
		Env:        c.config.Env,
		Tags:       c.config.Tags,
		DeactivateCallback: func(vu lib.InitializedVU) {
			c.state.ReturnVU(vu, true)
			c.barrier.consuming.Add(-1)
			c.active.Done()
		},
		GetNextIterationCounters: c.nextIteration,
	})
	c.loops.Go(func() {
		defer c.barrier.leave(m)
		for c.over.Err() == nil {
			ok := iterate(c.ctx, c.state, c.logger, active, c.abort)
			m.setBusy(false)
			m.isReady() // as far as it will ever be
			if !ok {
				_ = machine.Timer(c.over, driver.Now()+int64(failurePause))
			}
		}
	})
}

// oneReady notes that one more VU is ready.
func (c *crew) oneReady() {
	if c.missing.Add(-1) == 0 {
		c.barrier.of(c.config.Name).set()
	}
}

// nextIteration gives the number of an iteration in this process and in the test, as scripts see them.
func (c *crew) nextIteration() (local, global uint64) {
	c.counting.Lock()
	defer c.counting.Unlock()
	scaled, unscaled := c.iterations.Next()
	return uint64(scaled - 1), uint64(unscaled - 1) //gosec:disable G115 -- they are counted from 1
}
