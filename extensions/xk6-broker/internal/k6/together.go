package k6

import (
	"context"
	"fmt"

	"go.k6.io/k6/v2/lib"
)

// together is a call that all processes of a test make, as k6 runs setup and teardown in each of them: what is to be done to a broker once is done by the first
// of them. The zero one is a call of one process.
type together struct {
	run   *run
	point string // names the call; "" where it is one of this process alone
	count int
	index int
	where string // it is made
}

// together is the call that is being made. It is called on the event loop, so that all processes number their calls alike.
func (in *instance) together(ctx context.Context, op string) together {
	if _, err := in.use(); err != nil || lib.GetScenarioState(ctx) != nil { // the test has begun, and no scenario of it
		return together{}
	}
	n, index := in.run.Processes()
	if n < 2 || index < 0 {
		return together{}
	}
	where := "setup"
	if in.run.state.Load().execution.GetCurrentExecutionStatus() == lib.ExecutionStatusTeardown {
		where = "teardown"
	}
	in.run.calls++
	return together{run: in.run, point: fmt.Sprintf("%s, call %d: %s", where, in.run.calls, op), count: n, index: index, where: where}
}

func (c together) done() string { return c.point + ": done" }

// once does what may be done again in vain: the first process does it, and the others when that has.
func (c together) once(ctx context.Context, do func() error) error {
	if c.point == "" {
		return do()
	}
	switch siblings := c.run.siblings(ctx); {
	case siblings == nil:
	case c.index == 0:
		defer siblings.Reach(c.done())
	default:
		siblings.Reach(c.done())
		if _, err := siblings.Await(ctx, c.done()); err != nil {
			return fmt.Errorf("the first process of the test does it before the others: %w", err)
		}
	}
	return do()
}

// removing does what takes from the others what they use: the first process does it, when all have come to it, and the others go on when that has.
func (c together) removing(ctx context.Context, do func() error) error {
	if c.point == "" {
		return do()
	}
	siblings := c.run.siblings(ctx)
	switch {
	case siblings == nil:
		return c.refused()
	case c.index == 0:
		defer siblings.Reach(c.done())
	default:
		siblings.Reach(c.done())
	}
	siblings.Reach(c.point)
	if _, err := siblings.Await(ctx, c.point); err != nil {
		return fmt.Errorf("all processes of the test are to come to it first: %w", err)
	}
	if c.index == 0 {
		return do()
	}
	if _, err := siblings.Await(ctx, c.done()); err != nil {
		return fmt.Errorf("the first process of the test does it for all: %w", err)
	}
	return nil
}

// refused is the error of what processes would do to each other that have no coordinator. It is no "unsupported": a script that goes on without what its
// broker cannot do would go on with what was to be removed.
func (c together) refused() error {
	return fmt.Errorf("in %s it needs a coordinator if a test has %d processes: set %s", c.where, c.count, envCoordinator)
}
