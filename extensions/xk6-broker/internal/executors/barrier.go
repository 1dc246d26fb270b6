package executors

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// barrier is where the scenarios of a test wait for each other: those that send for consumers to be ready, consumers for all others to be
// over.
type barrier struct {
	find      atomic.Pointer[func(context.Context) Siblings]
	consuming atomic.Int64 // VUs of consumers that k6 counts as active
	aborted   atomic.Bool  // by a script, in an iteration of an executor of this package

	mu      sync.Mutex
	ready   map[string]*ready // scenarios of consumers, by name
	over    map[string]bool   // scenarios of open-arrival-rate and producers
	members map[*Member]struct{}
}

// Aborted reports whether a script has ended the test in an iteration of an executor of this package. k6 does not take that for an
// interruption.
func Aborted(es *lib.ExecutionState) bool { return barrierOf(es).aborted.Load() }

// ready is whether a scenario's consumers are.
type ready struct {
	once  sync.Once
	all   chan struct{} // closed when they are
	at    int64         // when that was, in all processes of the test, by [driver.Now]
	since int64         // when somebody began to wait for them
}

func (r *ready) set() {
	r.once.Do(func() {
		r.at = driver.Now()
		close(r.all)
	})
}

var barriers sync.Map // of *barrier, by *lib.ExecutionState

func barrierOf(es *lib.ExecutionState) *barrier {
	b, _ := barriers.LoadOrStore(es, &barrier{ready: map[string]*ready{}, over: map[string]bool{}, members: map[*Member]struct{}{}})
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

func (b *barrier) join(m *Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members[m] = struct{}{}
}

func (b *barrier) leave(m *Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.members, m)
}

// idleSince returns since when no VU of consumers has been busy: now if one is.
func (b *barrier) idleSince(now int64) (since int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for m := range b.members {
		since = max(since, m.idleSince(now))
	}
	return since
}

// finish notes that a scenario of open-arrival-rate or producers is over.
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

// awaited are the scenarios of consumers that start no later than another scenario does, in this process and in the others, if there are any.
func awaited(es *lib.ExecutionState, startTime time.Duration, others bool) (all []lib.ExecutorConfig) {
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() == ConsumersType && c.GetStartTime() <= startTime && (others || c.HasWork(es.ExecutionTuple)) {
			all = append(all, c)
		}
	}
	return all
}

// await returns when a scenario's consumers are ready, in all processes, or when somebody has waited for them long enough. Who waits came at a time.
func (b *barrier) await(ctx context.Context, es *lib.ExecutionState, s Siblings, c lib.ExecutorConfig, came int64, logger logrus.FieldLogger) error {
	scenario := c.GetName()
	r, now := b.of(scenario), driver.Now()
	b.mu.Lock()
	r.since = cmp.Or(r.since, came)
	limit := time.NewTimer(time.Duration(max(r.since, came) + int64(readyWithin) - now))
	b.mu.Unlock()
	defer limit.Stop()
	if !c.HasWork(es.ExecutionTuple) {
		r.set()
	}
	select {
	case <-r.all:
	case <-limit.C:
		r.once.Do(func() {
			logger.Warnf("the consumers of scenario %s are not ready after %v: going on without them", scenario, readyWithin)
			r.at = driver.Now()
			close(r.all)
		})
	case <-ctx.Done():
		return ctx.Err()
	}
	if s == nil {
		return nil
	}
	b.mu.Lock()
	ready := r.at // which others that wait may move on
	b.mu.Unlock()
	at, err := b.readyEverywhere(ctx, s, es, c, ready, logger)
	b.mu.Lock()
	defer b.mu.Unlock()
	r.at = max(r.at, at)
	return err
}

// awaitTurn gives when a scenario is to begin that has come at its start time, a moment before that is: when its consumers are ready, and as much later as any
// that came before it waited for its own, so that scenarios begin as far from one another as the script has them; in all processes at one time.
func (b *barrier) awaitTurn(ctx context.Context, es *lib.ExecutionState, startTime time.Duration, logger logrus.FieldLogger) (at int64, err error) {
	return b.awaitTurnOf(ctx, es, startTime, driver.Now()-int64(startTime), logger)
}

// awaitTurnOf does so for scenarios that began in this process at a time, those whose start time is 0.
func (b *barrier) awaitTurnOf(ctx context.Context, es *lib.ExecutionState, startTime time.Duration, began int64, logger logrus.FieldLogger) (at int64, err error) {
	s, waited := b.siblings(ctx), int64(0)
	zero, err := b.zero(ctx, s, began, logger)
	came := zero + int64(startTime)
	if err != nil {
		return came, err
	}
	for _, c := range awaited(es, startTime, s != nil) {
		if err := b.await(ctx, es, s, c, came, logger); err != nil {
			return came, err
		}
		waited = max(waited, b.waited(c.GetName()))
	}
	if at = came + waited; s != nil { // though it be over by now: the schedules of all processes are one, and who is late is seen to be
		return at, machine.Timer(ctx, at-int64(early))
	}
	err = machine.Timer(ctx, at)
	return driver.Now(), err
}

// waited is how long whoever came first waited for a scenario's consumers, which are ready, in ns.
func (b *barrier) waited(scenario string) int64 {
	r := b.of(scenario)
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.at - r.since
}

// AwaitTurn returns when a loop may send that begins in the scenario of a VU, whose context ctx is, or with ctx's error: when the consumers of executor
// "consumers" are ready that start no later than the scenario. It gives the time at which the scenario begins in all processes of the test; 0 where that
// is over, or there is but one. Consumers themselves, setup and teardown wait for nobody.
func AwaitTurn(ctx context.Context, logger logrus.FieldLogger) (at int64, err error) {
	es, scenario := lib.GetExecutionState(ctx), lib.GetScenarioState(ctx)
	if _, ok := MemberFrom(ctx); ok || es == nil || scenario == nil {
		return 0, nil
	}
	c, ok := es.Test.Options.Scenarios[scenario.Name]
	if !ok {
		return 0, nil
	}
	b := barrierOf(es)
	if b.siblings(ctx) != nil {
		began := driver.Now() - int64(time.Since(scenario.StartTime)) - int64(c.GetStartTime())
		if at, err = b.awaitTurnOf(ctx, es, c.GetStartTime(), began, logger); at <= driver.Now() {
			at = 0
		}
		return at, err
	}
	now := driver.Now()
	for _, of := range awaited(es, c.GetStartTime(), false) {
		if err := b.await(ctx, es, nil, of, now, logger); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// How consumers find out that the others are over. k6 tells nobody when a scenario is, only how many VUs are active.
const (
	overPoll  = 100 * time.Millisecond
	overQuiet = 5           // polls in which no VU of theirs is active
	overStart = time.Second // in which a scenario whose time has come has activated its VUs
)

// awaitOthers returns when all scenarios but those of consumers are over, and those of consumers have begun, or with ctx's error. The
// test's scenarios began at start.
func (b *barrier) awaitOthers(ctx context.Context, es *lib.ExecutionState, start int64) error {
	all := others(es)
	for quiet := 0; quiet < overQuiet; {
		if err := machine.Timer(ctx, driver.Now()+int64(overPoll)); err != nil {
			return err
		}
		quiet++
		if es.GetCurrentlyActiveVUsCount() > b.consuming.Load() {
			quiet = 0
		}
		spent := time.Duration(driver.Now() - start)
		for _, c := range all {
			if !b.isOver(c, es, spent) {
				quiet = 0
			}
		}
		if !b.allReady(es, spent) {
			quiet = 0
		}
	}
	return nil
}

// allReady reports whether all scenarios of consumers are there, or have had their time to be: those that begin later may send on what they
// receive, too.
func (b *barrier) allReady(es *lib.ExecutionState, spent time.Duration) bool {
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() != ConsumersType || !c.HasWork(es.ExecutionTuple) || spent > c.GetStartTime()+readyWithin {
			continue
		}
		select {
		case <-b.of(c.GetName()).all:
		default:
			return false
		}
	}
	return true
}

// isOver reports whether a scenario is over but for iterations that still go on, so long after the test's scenarios began.
func (b *barrier) isOver(c lib.ExecutorConfig, es *lib.ExecutionState, spent time.Duration) bool {
	switch c.(type) {
	case *Config, *ProducersConfig:
		if c.HasWork(es.ExecutionTuple) {
			return b.finished(c.GetName())
		}
	}
	return spent > c.GetStartTime()+lasts(c, es.ExecutionTuple)+overStart
}
