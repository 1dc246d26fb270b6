package executors

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// Siblings are the processes of a test, each with a segment. They meet at named points.
type Siblings interface {
	// Reach reports that this process is at a point.
	Reach(point string)
	// Await returns when all processes are at a point, with one time for all, by [driver.Now]. Its
	// error names missing processes, once.
	Await(ctx context.Context, point string) (at int64, err error)
}

// Meet makes the scenarios of a test begin at the same time in all its processes. Find returns
// these, or nil if there are none.
func Meet(es *lib.ExecutionState, find func(context.Context) Siblings) {
	barrierOf(es).find.Store(&find)
}

// Begun is the point at which a process's scenarios begin, each at its start time.
const Begun = "scenarios begin"

// Spent are the points at a process's end, in their order: all its scenarios but consumers
// are over, and these have received everything.
var Spent = []string{"all but consumers are over", "everything has arrived"}

func readyPoint(scenario string) string { return "consumers of scenario " + scenario + " are ready" }

// Beginning returns the points that a process reaches when its scenarios begin: also scenarios of
// consumers in which it has no part.
func Beginning(es *lib.ExecutionState) []string {
	points := []string{Begun}
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() == ConsumersType && !c.HasWork(es.ExecutionTuple) {
			points = append(points, readyPoint(c.GetName()))
		}
	}
	return points
}

// barrier is the place where the scenarios of a test wait for each other: producers until consumers
// are ready, consumers until all others are over.
type barrier struct {
	find      atomic.Pointer[func(context.Context) Siblings]
	consuming atomic.Int64 // VUs of consumers that k6 counts as active
	aborted   atomic.Bool  // by a script, in an iteration of an executor of this package

	mu       sync.Mutex
	ready    map[string]*ready   // by scenario of consumers
	finished map[string]struct{} // scenarios of open-arrival-rate and producers
	members  map[*Member]struct{}
}

// ready is the readiness of a scenario's consumers.
type ready struct {
	once  sync.Once
	all   chan struct{} // closed when they are ready
	at    int64         // that time, in all processes
	since int64         // the time at which the first scenario began to wait for them
}

func (r *ready) set() {
	r.once.Do(func() {
		r.at = driver.Now()
		close(r.all)
	})
}

var barriers sync.Map // of *barrier, by *lib.ExecutionState

func barrierOf(es *lib.ExecutionState) *barrier {
	b, _ := barriers.LoadOrStore(es, &barrier{
		ready: map[string]*ready{}, finished: map[string]struct{}{}, members: map[*Member]struct{}{},
	})
	return b.(*barrier) //nolint:forcetypeassert // the map has nothing else
}

// Aborted reports whether a script ended the test in an iteration of an executor of this package.
// k6 does not report that as an interruption.
func Aborted(es *lib.ExecutionState) bool { return barrierOf(es).aborted.Load() }

// siblings returns the processes of the test, nil if there are none.
func (b *barrier) siblings(ctx context.Context) Siblings {
	if find := b.find.Load(); find != nil {
		return (*find)(ctx)
	}
	return nil
}

// consumers returns the readiness of a scenario's consumers.
func (b *barrier) consumers(scenario string) *ready {
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

// idleSince returns the time since which no VU of consumers is busy, now if one is.
func (b *barrier) idleSince(now int64) (since int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for m := range b.members {
		since = max(since, m.idleSince(now))
	}
	return since
}

// finish records that a scenario of open-arrival-rate or producers is over.
func (b *barrier) finish(scenario string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finished[scenario] = struct{}{}
}

// announce reports to the other processes that a scenario's consumers are ready.
func (b *barrier) announce(ctx context.Context, scenario string) {
	select {
	case <-b.consumers(scenario).all:
	case <-ctx.Done():
		return
	}
	if s := b.siblings(ctx); s != nil {
		s.Reach(readyPoint(scenario))
	}
}

// readyWithin is the limit of the wait for consumers.
const readyWithin = time.Minute

// early is the time before a common start at which a process stops waiting, to sleep precisely.
const early = 5 * time.Millisecond

// turn is the wait of one scenario, or of a loop in it, for its begin.
type turn struct {
	*barrier

	state    *lib.ExecutionState
	siblings Siblings
	logger   logrus.FieldLogger
}

// await returns the time at which a scenario begins: when its consumers are ready, and as much
// later as any scenario before it waited for its own, so that the distances are as in the script.
// In this process the scenarios with start time 0 began at zero.
func (t *turn) await(ctx context.Context, startTime time.Duration, zero int64) (at int64, err error) {
	zero, err = t.meet(ctx, Begun, zero)
	planned := zero + int64(startTime)
	if err != nil {
		return planned, err
	}
	at = planned
	for _, c := range t.state.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() != ConsumersType || c.GetStartTime() > startTime {
			continue
		}
		if t.siblings == nil && !c.HasWork(t.state.ExecutionTuple) {
			continue
		}
		waited, err := t.awaitConsumers(ctx, c, planned)
		if err != nil {
			return planned, err
		}
		at = max(at, planned+waited)
	}
	return at, nil
}

// awaitConsumers returns when a scenario's consumers are ready in all processes, or the limit is
// over. It returns for how long the first scenario waited for them, in ns.
func (t *turn) awaitConsumers(ctx context.Context, c lib.ExecutorConfig, planned int64) (waited int64, err error) {
	r := t.consumers(c.GetName())
	t.mu.Lock()
	r.since = cmp.Or(r.since, planned)
	limit := time.NewTimer(time.Duration(max(r.since, planned) + int64(readyWithin) - driver.Now()))
	t.mu.Unlock()
	defer limit.Stop()
	if !c.HasWork(t.state.ExecutionTuple) {
		r.set()
	}
	select {
	case <-r.all:
	case <-limit.C:
		r.once.Do(func() {
			t.logger.Warnf("the consumers of scenario %s are not ready after %v: going on without them",
				c.GetName(), readyWithin)
			r.at = driver.Now()
			close(r.all)
		})
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	t.mu.Lock()
	at := r.at
	t.mu.Unlock()
	at, err = t.meet(ctx, readyPoint(c.GetName()), at)
	t.mu.Lock()
	defer t.mu.Unlock()
	r.at = max(r.at, at)
	return r.at - r.since, err
}

// meet returns when all processes are at a point, and the time that counts in all of them, which is
// not before at. Missing processes are named and left behind.
func (t *turn) meet(ctx context.Context, point string, at int64) (int64, error) {
	if t.siblings == nil {
		return at, nil
	}
	t.siblings.Reach(point)
	common, err := t.siblings.Await(ctx, point)
	if ctx.Err() != nil {
		return at, ctx.Err()
	}
	if err != nil {
		t.logger.Warnf("going on without some processes of the test: %v", err)
		common = driver.Now()
	}
	return max(common, at), nil
}

// awaitTurn returns when a scenario begins whose start time is now, and the time of its begin: in
// all processes the same, to which early is left.
func (b *barrier) awaitTurn(
	ctx context.Context, es *lib.ExecutionState, startTime time.Duration, logger logrus.FieldLogger,
) (at int64, err error) {
	t := &turn{barrier: b, state: es, siblings: b.siblings(ctx), logger: logger}
	if at, err = t.await(ctx, startTime, driver.Now()-int64(startTime)); err != nil {
		return at, err
	}
	if t.siblings != nil { // one schedule in all processes: a late process shows as late
		return at, machine.Timer(ctx, at-int64(early))
	}
	err = machine.Timer(ctx, at)
	return driver.Now(), err
}

// AwaitTurn returns when a loop can send in the VU with the context ctx, or with ctx's error: when
// the consumers of executor consumers are ready that start no later than its scenario. It returns
// the future time at which the scenario begins in all processes, 0 if there is none. Consumers,
// setup and teardown do not wait.
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
	t := &turn{barrier: b, state: es, siblings: b.siblings(ctx), logger: logger}
	began := driver.Now()
	if t.siblings != nil {
		began -= int64(time.Since(scenario.StartTime))
	}
	at, err = t.await(ctx, c.GetStartTime(), began-int64(c.GetStartTime()))
	if t.siblings == nil || at <= driver.Now() {
		at = 0
	}
	return at, err
}

// Consumers poll whether the others are over, because k6 only reports the number of active VUs.
const (
	overPoll  = 100 * time.Millisecond
	overQuiet = 5           // polls without active VUs
	overStart = time.Second // for a scenario to activate its VUs
)

// others returns the scenarios of the whole test that are not of consumers.
func others(es *lib.ExecutionState) (list []lib.ExecutorConfig) {
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() != ConsumersType {
			list = append(list, c)
		}
	}
	return list
}

// awaitOthers returns when all scenarios but of consumers are over, and consumers have begun, or
// with ctx's error. The test's scenarios began at start.
func (b *barrier) awaitOthers(ctx context.Context, es *lib.ExecutionState, start int64) error {
	for quiet := 0; quiet < overQuiet; quiet++ {
		if err := machine.Timer(ctx, driver.Now()+int64(overPoll)); err != nil {
			return err
		}
		if !b.quiet(es, time.Duration(driver.Now()-start)) {
			quiet = -1
		}
	}
	return nil
}

// quiet reports whether no VU but of consumers is active or will be, so long after the begin.
// Consumers that begin later can send on their messages too.
func (b *barrier) quiet(es *lib.ExecutionState, spent time.Duration) bool {
	if es.GetCurrentlyActiveVUsCount() > b.consuming.Load() {
		return false
	}
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() != ConsumersType {
			if !b.isOver(c, es, spent) {
				return false
			}
			continue
		}
		if !c.HasWork(es.ExecutionTuple) || spent > c.GetStartTime()+readyWithin {
			continue
		}
		select {
		case <-b.consumers(c.GetName()).all:
		default:
			return false
		}
	}
	return true
}

// isOver reports whether a scenario begins no more iterations, so long after the begin of the test.
func (b *barrier) isOver(c lib.ExecutorConfig, es *lib.ExecutionState, spent time.Duration) bool {
	length := time.Duration(0) // iterations can be over at once
	switch c := c.(type) {
	case *Config, *ProducersConfig:
		if c.HasWork(es.ExecutionTuple) {
			b.mu.Lock()
			defer b.mu.Unlock()
			_, finished := b.finished[c.GetName()]
			return finished
		}
	case executor.PerVUIterationsConfig, executor.SharedIterationsConfig:
	default:
		length, _ = lib.GetEndOffset(c.GetExecutionRequirements(es.ExecutionTuple))
		length -= c.GetGracefulStop()
	}
	return spent > c.GetStartTime()+length+overStart
}
