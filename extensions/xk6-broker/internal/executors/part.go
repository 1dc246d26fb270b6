package executors

import (
	"context"
	"os"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// Part is what a process has of a load that each process of a test calls for, as their script is one: the share of its execution segment. The zero
// one is all of it.
type Part struct{ segment *lib.ExecutionTuple }

type partKey struct{}

// PartOf is the part of loops in a VU of a test, whose context ctx is. Of the VUs that k6 divides among the processes each has the whole of its loops, as no
// other process has that VU.
func PartOf(ctx context.Context, es *lib.ExecutionState) Part {
	if p, ok := ctx.Value(partKey{}).(Part); ok {
		return p
	}
	if lib.GetScenarioState(ctx) == nil { // setup and teardown, which k6 runs in each process
		return Part{es.ExecutionTuple}
	}
	return Part{}
}

// in is a context of a VU that each process has.
func (p Part) in(ctx context.Context) context.Context { return context.WithValue(ctx, partKey{}, p) }

// Share is which messages, or arrivals, are this process's.
func (p Part) Share() schedule.Share {
	if p.segment == nil {
		return schedule.Share{}
	}
	return segmentShare(p.segment)
}

// Scale is how many of so many are this process's.
func (p Part) Scale(n int) int {
	if p.segment == nil {
		return n
	}
	return int(p.segment.ScaleInt64(int64(n)))
}

// Ours reports whether a scenario's executor is of this package. What those have no share of nobody misses.
func Ours(c lib.ExecutorConfig) bool {
	switch c.(type) {
	case *Config, *ConsumersConfig, *ProducersConfig:
		return true
	}
	return false
}

// mostProcesses is more than any test has.
const mostProcesses = 1 << 16

// eachProcess is the VUs of a scenario that has one in each process. Who inspects the script asks how many the whole test can have, and does so to know whether
// each of its processes would have one, as k6-operator does, which does not say how many there are going to be.
func eachProcess() lib.ExecutionStep {
	step := lib.ExecutionStep{PlannedVUs: 1}
	if len(os.Args) > 1 && os.Args[1] == "inspect" {
		step.MaxUnplannedVUs = mostProcesses - 1
	}
	return step
}
