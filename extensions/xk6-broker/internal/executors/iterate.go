package executors

import (
	"context"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib"
)

// iterate runs an iteration and does the bookkeeping that k6 leaves to executors. A script that ends the test ends it by abort. It tells
// whether all went well.
func iterate(ctx context.Context, state *lib.ExecutionState, logger *logrus.Entry, vu lib.ActiveVU, abort func(error)) bool {
	err := vu.RunOnce()
	if ctx.Err() != nil {
		state.AddInterruptedIterations(1)
		return false
	}
	if err != nil {
		if errext.IsInterruptError(err) { // the script's own exec.test.abort
			abort(err)
			state.AddInterruptedIterations(1)
			return false
		}
		text, fields := errext.Format(err)
		logger.WithFields(logrus.Fields(fields)).Error(text)
	}
	state.AddFullIterations(1)
	return err == nil
}
