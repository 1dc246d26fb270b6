package executor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/wake"
)

// barrier is where the scenarios of a test wait for each other: those that send for consumers to be ready, consumers for all others to be
// over.
type barrier struct {
	consuming atomic.Int64 // VUs of consumers that k6 counts as active

	mu    sync.Mutex
	ready map[string]*ready // scenarios of consumers, by name
	over  map[string]bool   // scenarios of open-arrival-rate
}

// ready is whether a scenario's consumers are.
type ready struct {
	once sync.Once
	all  chan struct{} // closed when they are
}

func (r *ready) set() { r.once.Do(func() { close(r.all) }) }

//nolint:gochecknoglobals // k6 lends executors nothing in common but the state of the test
var barriers sync.Map // of *barrier, by *lib.ExecutionState

func barrierOf(es *lib.ExecutionState) *barrier {
	b, _ := barriers.LoadOrStore(es, &barrier{ready: map[string]*ready{}, over: map[string]bool{}})
	return b.(*barrier) //nolint:forcetypeassert // there is nothing else in it
}

func (b *barrier) of(scenario string) *ready {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.ready[scenario]
	if !ok {
		r = &ready{all: make(chan struct{})}
		b.ready[scenario] = r
	}
	return r
}

// finish notes that a scenario of open-arrival-rate is over.
func (b *barrier) finish(scenario string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over[scenario] = true
}

func (b *barrier) finished(scenario string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over[scenario]
}

// readyWithin bounds the wait for consumers: one that never opens any would hold up the test for good.
const readyWithin = time.Minute

// awaitConsumers returns when the consumers are ready that start no later than a scenario does.
func awaitConsumers(ctx context.Context, es *lib.ExecutionState, startTime time.Duration, logger logrus.FieldLogger) error {
	limit := time.NewTimer(readyWithin)
	defer limit.Stop()
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() != ConsumersType || c.GetStartTime() > startTime || !c.HasWork(es.ExecutionTuple) {
			continue
		}
		select {
		case <-barrierOf(es).of(c.GetName()).all:
		case <-limit.C:
			logger.Warnf("the consumers of scenario %s are not ready after %v: going on without them", c.GetName(), readyWithin)
			return nil
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // it is the caller's own
		}
	}
	return nil
}

// AwaitConsumers returns when the consumers of executor "consumers" are ready that start no later than the scenario of a VU, whose
// context ctx is, or with ctx's error. Consumers themselves, setup and teardown wait for nobody.
func AwaitConsumers(ctx context.Context, logger logrus.FieldLogger) error {
	es, scenario := lib.GetExecutionState(ctx), lib.GetScenarioState(ctx)
	if _, ok := MemberFrom(ctx); ok || es == nil || scenario == nil {
		return nil
	}
	c, ok := es.Test.Options.Scenarios[scenario.Name]
	if !ok {
		return nil
	}
	return awaitConsumers(ctx, es, c.GetStartTime(), logger)
}

// How consumers find out that the others are over. k6 tells nobody when a scenario is, only how many VUs are active.
const (
	overPoll  = 100 * time.Millisecond
	overQuiet = 5           // polls in which no VU of theirs is active
	overStart = time.Second // in which a scenario whose time has come has activated its VUs
)

// awaitOthers returns when all scenarios but those of consumers are over, or with ctx's error. The test's scenarios began at start.
func (b *barrier) awaitOthers(ctx context.Context, es *lib.ExecutionState, start int64) error {
	all := others(es)
	for quiet := 0; quiet < overQuiet; {
		if err := wake.Timer(ctx, driver.Now()+int64(overPoll)); err != nil {
			return err //nolint:wrapcheck // it is the caller's own
		}
		quiet++
		if es.GetCurrentlyActiveVUsCount() > b.consuming.Load() {
			quiet = 0
		}
		for _, c := range all {
			if !b.isOver(c, es, time.Duration(driver.Now()-start)) {
				quiet = 0
			}
		}
	}
	return nil
}

// isOver tells whether a scenario is over but for iterations that still go on, so long after the test's scenarios began.
func (b *barrier) isOver(c lib.ExecutorConfig, es *lib.ExecutionState, spent time.Duration) bool {
	if _, ok := c.(*Config); ok && c.HasWork(es.ExecutionTuple) {
		return b.finished(c.GetName())
	}
	return spent > c.GetStartTime()+lasts(c, es.ExecutionTuple)+overStart
}
