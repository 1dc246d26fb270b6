package executors

import (
	"context"
	"os"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// Part is the part of a load that one process of a test has. The zero Part is all.
type Part struct{ segment *lib.ExecutionTuple }

type partKey struct{}

// PartOf returns the part of loops in a VU with the context ctx. It is all for the VUs that k6
// divides among the processes, and the process's share for the VUs that each process has.
func PartOf(ctx context.Context, es *lib.ExecutionState) Part {
	if p, ok := ctx.Value(partKey{}).(Part); ok {
		return p
	}
	if lib.GetScenarioState(ctx) == nil { // setup and teardown
		return Part{es.ExecutionTuple}
	}
	return Part{}
}

// in returns a context of a VU that each process has.
func (p Part) in(ctx context.Context) context.Context { return context.WithValue(ctx, partKey{}, p) }

// Share returns the process's messages or arrivals. k6's executors scale the sequence of segments
// to maxVUs first, which changes the number of arrivals of a segment; this one does not.
func (p Part) Share() schedule.Share {
	if p.segment == nil {
		return schedule.Share{}
	}
	start, offsets, _ := p.segment.GetStripedOffsets()
	return schedule.Stripe(start, offsets)
}

// Scale returns the process's part of n.
func (p Part) Scale(n int) int {
	if p.segment == nil {
		return n
	}
	return int(p.segment.ScaleInt64(int64(n)))
}

// Ours reports whether a scenario has an executor of this package. A segment can have no part of
// those.
func Ours(c lib.ExecutorConfig) bool {
	switch c.(type) {
	case *Config, *ConsumersConfig, *ProducersConfig:
		return true
	}
	return false
}

// mostProcesses is more than any test has.
const mostProcesses = 1 << 16

// eachProcess returns the VUs of a scenario with one VU in each process. For k6 inspect it is the
// number that a whole test can have, because k6-operator asks whether each process would have a VU.
func eachProcess() lib.ExecutionStep {
	step := lib.ExecutionStep{PlannedVUs: 1}
	if len(os.Args) > 1 && os.Args[1] == "inspect" {
		step.MaxUnplannedVUs = mostProcesses - 1
	}
	return step
}
