// Package executors has three executors for k6: open-arrival-rate, producers and consumers.
//
// In open-arrival-rate iterations start at the times of a schedule. An arrival that finds no VU
// free waits for one and keeps its due time, so latencies from [Arrival].Due include the wait.
// Arrivals that wait when the duration ends are served within gracefulStop; the rest is counted as
// unserved.
//
// In consumers VUs loop until all other scenarios are over and everything that was sent has
// arrived. The schedules of open-arrival-rate begin when they are ready.
//
// k6 divides the VUs of a test among its processes by their execution segments. Scenarios of
// producers, and of consumers without an option vus, have one VU in each process instead, and the
// messages of its loops are divided: see [Part].
package executors

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
	"go.k6.io/k6/v2/lib/types"
	"gopkg.in/guregu/null.v3"
)

// Register registers the executors with k6. It must be called once.
func Register() {
	register(Type, newConfig)
	register(ConsumersType, newConsumersConfig)
	register(ProducersType, newProducersConfig)
}

// register registers an executor with a function that makes its default options.
func register[C lib.ExecutorConfig](name string, defaults func(scenario string) C) {
	lib.RegisterExecutorConfigType(name, func(scenario string, raw []byte) (lib.ExecutorConfig, error) {
		c := defaults(scenario)
		if err := lib.StrictJSONUnmarshal(raw, c); err != nil {
			return nil, fmt.Errorf("scenario %s: executor %s: %w", scenario, name, err)
		}
		return c, nil
	})
}

// checkLeast returns an error if an option is given and less than least.
func checkLeast(name string, value null.Int, least int64) (errs []error) {
	if value.Valid && value.Int64 < least {
		errs = append(errs, fmt.Errorf("option %q: %d is not %d or more", name, value.Int64, least))
	}
	return errs
}

// checkPositive returns an error if an option is given and not more than 0.
func checkPositive(name string, value types.NullDuration) (errs []error) {
	if value.Valid && value.TimeDuration() <= 0 {
		errs = append(errs, fmt.Errorf("option %q: %v is not more than 0", name, value.TimeDuration()))
	}
	return errs
}

// made is the test of the executor that was made last.
var made atomic.Pointer[lib.ExecutionState]

// Test returns the test whose executors were made, nil if it has none of this package.
func Test() *lib.ExecutionState { return made.Load() }

// base is the part that all executors have.
type base struct {
	*executor.BaseExecutor

	state  *lib.ExecutionState
	logger *logrus.Entry
}

func newBase(c lib.ExecutorConfig, es *lib.ExecutionState, logger *logrus.Entry) base {
	made.Store(es)
	return base{executor.NewBaseExecutor(c, es, logger), es, logger}
}

// activate gives a VU to a scenario until ctx ends. Back is called then, and next for each
// iteration.
func activate(
	ctx context.Context, vu lib.InitializedVU, c executor.BaseConfig,
	next func() (local, global uint64), back func(lib.InitializedVU),
) lib.ActiveVU {
	return vu.Activate(&lib.VUActivationParams{
		RunContext: ctx, Scenario: c.Name, Exec: c.GetExec(), Env: c.Env, Tags: c.Tags,
		DeactivateCallback: back, GetNextIterationCounters: next,
	})
}

// abortion is the end of a test by a script or an executor.
type abortion struct {
	state *lib.ExecutionState
	stop  context.CancelCauseFunc // ends all iterations of the scenario
	once  sync.Once
	err   error
}

// abort ends the scenario. Its Run returns the first error, which ends the test.
func (a *abortion) abort(err error) {
	a.once.Do(func() {
		a.err = err
		barrierOf(a.state).aborted.Store(true)
		a.stop(err)
	})
}

// iterate runs an iteration and does the bookkeeping of k6's executors. It reports success.
func (a *abortion) iterate(ctx context.Context, logger *logrus.Entry, vu lib.ActiveVU) bool {
	err := vu.RunOnce()
	if ctx.Err() != nil {
		a.state.AddInterruptedIterations(1)
		return false
	}
	if err != nil {
		if errext.IsInterruptError(err) { // the script's exec.test.abort
			a.abort(err)
			a.state.AddInterruptedIterations(1)
			return false
		}
		text, fields := errext.Format(err)
		logger.WithFields(logrus.Fields(fields)).Error(text)
	}
	a.state.AddFullIterations(1)
	return err == nil
}

// newScenario returns the state of a scenario without a planned length.
func newScenario(name, executorType string) *lib.ScenarioState {
	noProgress := func() (float64, []string) { return 0, nil }
	return &lib.ScenarioState{Name: name, Executor: executorType, StartTime: time.Now(), ProgressFn: noProgress}
}
