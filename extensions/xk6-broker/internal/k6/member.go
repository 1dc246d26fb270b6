package k6

import (
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
)

// part is what loops have in a VU of this process that runs.
func (in *instance) part() executors.Part {
	return executors.PartOf(in.vu.Context(), in.run.state.Load().execution)
}

// opening says that a VU of a scenario of consumers is about to open one, before anything else of the script runs; what it gives is
// called when that is done or has failed.
func (in *instance) opening(ctx context.Context) (done func()) {
	if m, ok := executors.MemberFrom(ctx); ok {
		return m.Opening(in.run.arrived)
	}
	return func() {}
}

// arrived returns when all that was sent has arrived at those who consume, or nothing more can. idle is since when all of them wait.
func (r *run) arrived(ctx context.Context, idle func(now int64) int64) error {
	return r.Arrived(ctx, idle)
}

// waiting says that a VU waits for messages, until done is called with whether any came.
func waiting(ctx context.Context) (done func(found bool)) {
	if m, ok := executors.MemberFrom(ctx); ok {
		return m.Waiting()
	}
	return func(bool) {}
}

// untilOver is ctx, which in a scenario of consumers also ends when nothing more is to come. What begins later may be bounded by something
// else: a script that goes on to receive would spin.
func untilOver(ctx context.Context, bounded bool) (context.Context, context.CancelFunc) {
	m, ok := executors.MemberFrom(ctx)
	if !ok || bounded && m.Over().Err() != nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.Over(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
