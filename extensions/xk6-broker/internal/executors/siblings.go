package executors

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Siblings are the other processes of a test, each of which has a segment of it: they come to points, and wait for each other there.
type Siblings interface {
	// Reach says that this process has come to a point.
	Reach(point string)
	// Await returns when all processes that are there have come to a point, and from when on it counts, by [driver.Now] of this process: the same
	// time in all of them. Who never came is the error, once, unless it is ctx's.
	Await(ctx context.Context, point string) (at int64, err error)
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

func readyPoint(scenario string) string { return "consumers of scenario " + scenario + " are ready" }

// Beginning are the points to which a process comes when its scenarios begin: that, and the consumers that it has none of.
func Beginning(es *lib.ExecutionState) []string {
	points := []string{Begun}
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.GetType() == ConsumersType && !c.HasWork(es.ExecutionTuple) {
			points = append(points, readyPoint(c.GetName()))
		}
	}
	return points
}

// early is how long before a common time a process is through with waiting for it: whoever sends then sleeps more precisely.
const early = 5 * time.Millisecond

// zero is when the scenarios began whose start time is 0, in all processes the same. Here that was at began.
func (b *barrier) zero(ctx context.Context, s Siblings, began int64, logger logrus.FieldLogger) (int64, error) {
	if s == nil {
		return began, nil
	}
	s.Reach(Begun)
	at, err := s.Await(ctx, Begun)
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
		s.Reach(readyPoint(c.GetName()))
	}
	at, err := s.Await(ctx, readyPoint(c.GetName()))
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
		s.Reach(readyPoint(scenario))
	}
}
