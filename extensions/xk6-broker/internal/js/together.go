package js

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.k6.io/k6/v2/lib"
)

// siblings are the other processes of a test, as far as this one can talk with them: they come to points, and wait for each other there.
type siblings interface {
	Reach(point string, lead time.Duration)
	Await(ctx context.Context, point string, who func(index int) bool) (at int64, err error)
}

// together is a call that all processes of a test make, as k6 runs setup and teardown in each of them: what is to be done to a broker once is done by the first
// of them. The zero one is a call of one process.
type together struct {
	siblings siblings // nil where they cannot be talked with
	point    string   // names the call; "" where it is one of this process alone
	count    int
	index    int
	setup    bool
}

// together is the call that is being made. It is called on the event loop, so that all processes number their calls alike.
func (in *instance) together(ctx context.Context, op string) together {
	es := lib.GetExecutionState(ctx)
	if _, err := in.use(); err != nil || es == nil || lib.GetScenarioState(ctx) != nil { // the test has begun, and no scenario of it
		return together{}
	}
	n, index := in.run.Processes()
	if n < 2 || index < 0 {
		return together{}
	}
	c := together{count: n, index: index, setup: es.GetCurrentExecutionStatus() != lib.ExecutionStatusTeardown}
	in.run.calls++
	c.point = fmt.Sprintf("%s, call %d: %s", c.where(), in.run.calls, op)
	if in.run.meet != nil {
		c.siblings = in.run.meet(ctx)
	}
	return c
}

func (c together) where() string {
	if c.setup {
		return "setup"
	}
	return "teardown"
}

func (c together) done() string { return c.point + ": done" }

func first(index int) bool { return index == 0 }

// once does what may be done again in vain: the first process does it, and the others when that has.
func (c together) once(ctx context.Context, do func() error) error {
	switch {
	case c.siblings == nil:
	case c.index == 0:
		defer c.siblings.Reach(c.done(), 0)
	default:
		if _, err := c.siblings.Await(ctx, c.done(), first); err != nil {
			return fmt.Errorf("the first process of the test does it before the others: %w", err)
		}
	}
	return do()
}

// removing does what takes from the others what they use: the first process does it, when all have come to it, and the others go on when that has.
func (c together) removing(ctx context.Context, do func() error) error {
	switch {
	case c.point == "":
		return do()
	case c.siblings == nil:
		return fmt.Errorf("in %s each of the %d processes of the test would do it, to what the others use: %w", c.where(), c.count, errApart)
	case c.index == 0:
		defer c.siblings.Reach(c.done(), 0)
	}
	c.siblings.Reach(c.point, 0)
	if _, err := c.siblings.Await(ctx, c.point, nil); err != nil {
		return fmt.Errorf("all processes of the test are to come to it first: %w", err)
	}
	if c.index == 0 {
		return do()
	}
	if _, err := c.siblings.Await(ctx, c.done(), first); err != nil {
		return fmt.Errorf("the first process of the test does it for all: %w", err)
	}
	return nil
}

// errApart is no "unsupported": a script that goes on without what the broker cannot do would go on with what it was to remove.
var errApart = errors.New("they cannot agree on one that does, as BROKER_PEERS is off or the broker is one that they cannot talk by; do it before the test")
