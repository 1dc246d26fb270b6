package executors

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Siblings are the other processes of a test, each of which has a segment of it: they come to points, and wait for each other there.
type Siblings interface {
	// Reach says that this process has come to a point, which counts from lead later on: by then the others have heard of it.
	Reach(point string, lead time.Duration)
	// Await returns when all of some processes have come to a point, and from when on it counts, by [driver.Now] of this process: the same time in all of
	// them. Who has not come in time is the error, unless it is ctx's, and waited for no more.
	Await(ctx context.Context, point string, who func(index int) bool) (at int64, err error)
	// Outlast returns when all processes that are still there have come to a point, or with ctx's error.
	Outlast(ctx context.Context, point string) error
}

// made is the test that executors of this package were made for last.
var made atomic.Pointer[lib.ExecutionState]

// Test is the test whose executors have been made, before k6 begins it; nil where it has none of this package.
func Test() *lib.ExecutionState { return made.Load() }

// Meet has the scenarios of a test begin when they do in all its processes. Find gives these, when they can be talked with, and nil where they cannot; it may
// be called often.
func Meet(es *lib.ExecutionState, find func(context.Context) Siblings) {
	barrierOf(es).find.Store(&find)
}

// siblings are the other processes; nil where there are none, or none that can be talked with.
func (b *barrier) siblings(ctx context.Context) Siblings {
	if find := b.find.Load(); find != nil {
		return (*find)(ctx)
	}
	return nil
}

// Begun is the point at which a process's scenarios begin, each at its start time.
const Begun = "scenarios begin"

// Spent are the points, in their order, to which a process comes at its end: all its scenarios are over but those of consumers, and these have received what
// was sent.
var Spent = []string{"all but consumers are over", "everything has arrived"}

// Leads of points. What has begun is early by what it takes to open a connection, so that producers are there when the first message is due.
const (
	BegunLead = 250 * time.Millisecond
	readyLead = 50 * time.Millisecond
)

func readyPoint(scenario string) string { return "consumers of scenario " + scenario + " are ready" }

// having tells of which processes the segment has work in a scenario, or in any where that is nil.
func having(es *lib.ExecutionState, scenario lib.ExecutorConfig) func(index int) bool {
	all := es.Test.Options.Scenarios.GetSortedConfigs()
	if scenario != nil {
		all = []lib.ExecutorConfig{scenario}
	}
	sequence := es.ExecutionTuple.Sequence
	return func(index int) bool {
		return index < len(sequence.ExecutionSegmentSequence) &&
			slices.ContainsFunc(all, func(c lib.ExecutorConfig) bool { return c.HasWork(sequence.GetTuple(index)) })
	}
}

// early is how long before a common time a process is through with waiting for it: whoever sends then sleeps more precisely.
const early = 5 * time.Millisecond

// zero is when the scenarios began whose start time is 0, in all processes the same. Here that was at began.
func (b *barrier) zero(ctx context.Context, s Siblings, es *lib.ExecutionState, began int64, logger logrus.FieldLogger) (int64, error) {
	if s == nil {
		return began, nil
	}
	s.Reach(Begun, BegunLead)
	at, err := s.Await(ctx, Begun, having(es, nil))
	if ctx.Err() != nil {
		return began, ctx.Err()
	}
	if err != nil {
		logger.Warnf("going on without some processes of the test: %v", err)
		at = driver.Now() // nothing was due while it waited for them
	}
	return max(at, began), nil
}

// readyEverywhere is when a scenario's consumers are in all processes; ready is when they were in this one.
func (b *barrier) readyEverywhere(ctx context.Context, s Siblings, es *lib.ExecutionState, c lib.ExecutorConfig, ready int64, logger logrus.FieldLogger) (int64, error) {
	if c.HasWork(es.ExecutionTuple) {
		s.Reach(readyPoint(c.GetName()), readyLead)
	}
	at, err := s.Await(ctx, readyPoint(c.GetName()), having(es, c))
	if ctx.Err() != nil {
		return ready, ctx.Err()
	}
	if err != nil {
		logger.Warnf("going on without the consumers of scenario %s in some processes of the test: %v", c.GetName(), err)
		at = driver.Now()
	}
	return max(at, ready), nil
}

// announce tells the other processes when a scenario's consumers are ready here.
func (b *barrier) announce(ctx context.Context, scenario string) {
	select {
	case <-b.of(scenario).all:
	case <-ctx.Done():
		return
	}
	if s := b.siblings(ctx); s != nil {
		s.Reach(readyPoint(scenario), readyLead)
	}
}
