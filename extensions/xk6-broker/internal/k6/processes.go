package k6

import (
	"context"
	"fmt"
	"strconv"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// This file has the part of this process in a test of several processes, and the calls that all of
// them make. coordination.go has the coordinator.

// The environment names the test.
const (
	envRun       = "BROKER_RUN"       // a name that all processes share
	envProcesses = "BROKER_PROCESSES" // how many there are
)

// processes is the state of this process among others.
type processes struct {
	segment      *result.Segment // of the test, once it runs; nil if it is not divided
	coordination *coordination   // nil without a coordinator
	calls        int             // of setup and teardown, which all processes make
}

// identity is the name of the test, "" for one process, and its number of processes, 0 if unknown.
type identity struct {
	run       string
	processes int
}

func identityOf(lookup func(string) (string, bool)) (id identity, err error) {
	id.run, _ = lookup(envRun)
	text, _ := lookup(envProcesses)
	if text == "" {
		return id, nil
	}
	if id.processes, err = strconv.Atoi(text); err != nil || id.processes < 1 {
		return id, fmt.Errorf("%s: %q is not a number of processes, 1 or more", envProcesses, text)
	}
	if id.run == "" {
		return id, fmt.Errorf("%s: the processes of a test need one name: give all of them the same %s", envProcesses, envRun)
	}
	return id, nil
}

// segments returns the execution segments of all processes, and the index of this one.
func segments(es *lib.ExecutionState) (all []*lib.ExecutionTuple, index int) {
	et := es.ExecutionTuple
	for i := range et.Sequence.ExecutionSegmentSequence {
		all = append(all, et.Sequence.GetTuple(i))
	}
	return all, et.SegmentIndex
}

// placeOf returns the number of processes and the index of this one by k6's sequence of segments; 0
// and -1 without one.
func placeOf(es *lib.ExecutionState) (count, index int) {
	if es.Test.Options.ExecutionSegmentSequence == nil {
		return 0, -1
	}
	all, index := segments(es)
	return len(all), index
}

// join notes the execution segment of this process, which a module gets when the test begins.
func (r *run) join(es *lib.ExecutionState) {
	et := es.ExecutionTuple
	if len(et.Sequence.ExecutionSegmentSequence) == 1 {
		return
	}
	segment := &result.Segment{
		Of: et.Segment.String(), Sequence: et.Sequence.String(), Nameless: !r.Named(),
	}
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if !c.HasWork(et) && !executors.Ours(c) {
			segment.Idle = append(segment.Idle, c.GetName())
		}
	}
	r.processes.segment = segment
	if count, index := placeOf(es); count > 0 && r.Named() {
		r.Join(count, index)
	}
}

// totalVUs returns the VUs of a scenario in all processes: planned, and at most.
func totalVUs(c lib.ExecutorConfig, segments []*lib.ExecutionTuple) (planned, most uint64) {
	for _, et := range segments {
		steps := c.GetExecutionRequirements(et)
		planned += lib.GetMaxPlannedVUs(steps)
		most += lib.GetMaxPossibleVUs(steps)
	}
	return planned, most
}

// commonCall is a call of setup or teardown that all processes make. The zero one is of one
// process.
type commonCall struct {
	run   *run
	point string // "" for one process
	index int
	count int
}

// commonCall numbers the call. It runs on the event loop, so all processes number their calls
// alike.
func (in *instance) commonCall(ctx context.Context, op string) commonCall {
	if _, err := in.use(); err != nil || lib.GetScenarioState(ctx) != nil {
		return commonCall{}
	}
	n, index := in.run.Processes()
	if n < 2 || index < 0 {
		return commonCall{}
	}
	in.run.processes.calls++
	return commonCall{run: in.run, point: fmt.Sprintf("call %d: %s", in.run.processes.calls, op), index: index, count: n}
}

// once has the first process do something that others may repeat, before the others do.
func (c commonCall) once(ctx context.Context, do func() error) error {
	if c.point == "" {
		return do()
	}
	siblings := c.run.siblings(ctx)
	if siblings == nil {
		return do()
	}
	if err := c.first(ctx, siblings, do); err != nil || c.index == 0 {
		return err
	}
	return do()
}

// removing has the first process remove something when all have come to the call. The others wait
// for that. Without a coordinator it fails, with an error that is not "unsupported".
func (c commonCall) removing(ctx context.Context, do func() error) error {
	if c.point == "" {
		return do()
	}
	siblings := c.run.siblings(ctx)
	if siblings == nil {
		return fmt.Errorf("it needs a coordinator if a test has %d processes: set %s", c.count, envCoordinator)
	}
	siblings.Reach(c.point)
	if _, err := siblings.Await(ctx, c.point); err != nil {
		siblings.Reach(c.done()) // another process may wait for it
		return fmt.Errorf("all processes of the test must come to it first: %w", err)
	}
	return c.first(ctx, siblings, do)
}

// done is the point at which the first process has done it.
func (c commonCall) done() string { return c.point + ": done" }

// first has the first process do something. The others wait for that.
func (c commonCall) first(ctx context.Context, siblings executors.Siblings, do func() error) error {
	if c.index == 0 {
		defer siblings.Reach(c.done())
		return do()
	}
	siblings.Reach(c.done())
	if _, err := siblings.Await(ctx, c.done()); err != nil {
		return fmt.Errorf("the first process of the test does it before the others: %w", err)
	}
	return nil
}
