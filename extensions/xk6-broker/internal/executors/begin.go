package executors

import (
	"context"
	"io"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// LoadBegins gives, when it is known, from when on a scenario may send that began in this process at a time, both by [driver.Now]: from when its consumers are
// ready and the other processes of the test have begun, at the same time in all of these. It moves nobody's turn, as [AwaitTurn] does.
func LoadBegins(ctx context.Context, es *lib.ExecutionState, scenario string, began int64) (at int64, err error) {
	c, ok := es.Test.Options.Scenarios[scenario]
	if !ok {
		return began, nil
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard) // those whose turn it is say what they miss
	b := barrierOf(es)
	s := b.siblings(ctx)
	start := int64(c.GetStartTime())
	if at, err = b.zero(ctx, s, began-start, logger); err != nil {
		return at, err
	}
	at += start
	for _, of := range awaited(es, c.GetStartTime(), s != nil) {
		ready := at
		if of.HasWork(es.ExecutionTuple) {
			limit := time.NewTimer(time.Duration(at + int64(readyWithin) - driver.Now()))
			r := b.of(of.GetName())
			select {
			case <-r.all:
				b.mu.Lock()
				ready = r.at
				b.mu.Unlock()
			case <-limit.C:
			case <-ctx.Done():
			}
			limit.Stop()
		}
		if s != nil && ctx.Err() == nil {
			ready, err = b.readyEverywhere(ctx, s, es, of, ready, logger)
		}
		if err != nil || ctx.Err() != nil {
			return at, ctx.Err()
		}
		at = max(at, ready)
	}
	return at, nil
}
