package k6

import (
	"runtime"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// circumstances are what k6 and the process know of the run.
func (r *run) circumstances() verdict.Circumstances {
	c := verdict.Circumstances{Dropped: r.dropped(), Stranded: r.stranded.Load(), WarmUp: r.warmUp.asked()}
	for _, scenario := range executors.Totals() {
		c.Unserved += scenario.Unserved
	}
	if state := r.state.Load(); state != nil {
		used, could := machine.CPU()-state.cpu, time.Since(state.began)*time.Duration(runtime.GOMAXPROCS(0))
		c.CPU = min(1, float64(used)/float64(could))
		c.Ended, c.After = endedEarly(state.execution), state.execution.GetCurrentTestRunDuration()
	}
	return c
}

// endedEarly says why a test ended before its time, where it did, as a variant of [reason.EndedEarly].
func endedEarly(execution *lib.ExecutionState) string {
	switch status := execution.GetCurrentExecutionStatus(); {
	case status == lib.ExecutionStatusInterrupted, executors.Aborted(execution):
		return "interrupted"
	case status == lib.ExecutionStatusEnded && execution.GetFullIterationCount()+execution.GetPartialIterationCount() == 0:
		return "no-iteration"
	}
	return ""
}
