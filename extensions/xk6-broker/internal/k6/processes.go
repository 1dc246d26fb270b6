package k6

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/coordinator"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// This file has the part of this process in a test of several processes, with a coordinator or
// without.

// The environment names the test and its coordinator.
const (
	envRun                = "BROKER_RUN"                 // a name that all processes share
	envProcesses          = "BROKER_PROCESSES"           // how many there are
	envCoordinator        = "BROKER_COORDINATOR"         // http://host:port of k6 x broker coordinator
	envCoordinatorToken   = "BROKER_COORDINATOR_TOKEN"   //gosec:disable G101 -- the name of a variable
	envCoordinatorTimeout = "BROKER_COORDINATOR_TIMEOUT" // limit of joining, and of the upload
)

// coordinatorTimeout is the default limit of joining, and of the upload.
const coordinatorTimeout = time.Minute

// processes is the state of this process among others.
type processes struct {
	shared       bool            // the test has several processes
	segment      *result.Segment // of the test, once it runs; nil if it is not divided
	coordination *coordination   // nil without a coordinator
	calls        int             // of setup and teardown, which all processes make
}

// identity is the name of the test, "" for one process, and its number of processes, 0 if unknown.
type identity struct {
	run       string
	processes int
}

func identityOf(lookup func(string) (string, bool)) (of identity, err error) {
	of.run, _ = lookup(envRun)
	text, _ := lookup(envProcesses)
	if text == "" {
		return of, nil
	}
	if of.processes, err = strconv.Atoi(text); err != nil || of.processes < 1 {
		return of, fmt.Errorf("%s: %q is not a number of processes, 1 or more", envProcesses, text)
	}
	if of.run == "" {
		return of, fmt.Errorf("%s: the processes of a test need one name: give all of them the same %s", envProcesses, envRun)
	}
	return of, nil
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
	all, _ := segments(es)
	if len(all) == 1 {
		return
	}
	shared := r.processes.shared
	et := es.ExecutionTuple
	segment := &result.Segment{Of: et.Segment.String(), Sequence: et.Sequence.String(), Nameless: !shared}
	r.processes.segment = segment
	count, index := placeOf(es)
	switch {
	case !shared:
		r.logger.Warnf(
			"this process has the execution segment %v, and no %s: it counts messages of the other processes as foreign; "+
				"give all processes one name",
			et.Segment,
			envRun,
		)
	case count > 0:
		if n, _ := r.Processes(); n != 0 && n != count {
			r.logger.Warnf("%s is %d, and the execution segment sequence has %d segments", envProcesses, n, count)
		}
		r.Join(count, index)
	default:
		r.logger.Warnf(
			"this process has the execution segment %v without --execution-segment-sequence: processes do not wait for one another",
			et.Segment,
		)
	}
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if !c.HasWork(et) && !executors.Ours(c) {
			segment.Idle = append(segment.Idle, c.GetName())
			_, vus := totalVUs(c, all)
			r.logger.Warnf("scenario %s has no VU in this process (execution segment %v): it has %d in all; "+
				"executor producers has one in each process", c.GetName(), et.Segment, vus)
		}
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

// coordination is the connection to the coordinator.
type coordination struct {
	address, token string
	timeout        time.Duration
	hello          coordinator.Hello

	begun  sync.Once
	joined chan struct{} // closed when client and err are set
	client *coordinator.Client
	err    error // of joining
}

// coordinationOf reads the environment; nil without a coordinator.
func coordinationOf(lookup func(string) (string, bool), run string) (*coordination, error) {
	c := &coordination{timeout: coordinatorTimeout, joined: make(chan struct{})}
	if c.address, _ = lookup(envCoordinator); c.address == "" {
		return nil, nil
	}
	c.token, _ = lookup(envCoordinatorToken)
	c.hello.Run = run
	if c.hello.Name, _ = lookup(envName); c.hello.Name == "" {
		c.hello.Name, _ = os.Hostname() // a label only
	}
	if text, _ := lookup(envCoordinatorTimeout); text != "" {
		var ok bool
		if c.timeout, ok = driver.ParseDuration(text); !ok || c.timeout <= 0 {
			return nil, fmt.Errorf("%s: %q is not a duration such as 1m, more than 0", envCoordinatorTimeout, text)
		}
	}
	return c, nil
}

// meet joins the test of the coordinator, if there is one. Only the first call has an effect.
func (r *run) meet(es *lib.ExecutionState) {
	c := r.processes.coordination
	if c == nil {
		return
	}
	c.begun.Do(func() {
		executors.Meet(es, r.siblings)
		go func() {
			defer close(c.joined)
			if c.client, c.err = r.joinTest(es); c.err != nil {
				c.err = c.failed(c.err)
				return
			}
			r.Call(c.client.Run)
			r.Join(c.client.Processes, c.client.Index)
		}()
		go r.announceScenarios(es)
	})
}

func (c *coordination) failed(err error) error {
	return fmt.Errorf("%s %s: %w", envCoordinator, c.address, err)
}

func (r *run) joinTest(es *lib.ExecutionState) (*coordinator.Client, error) {
	c := r.processes.coordination
	c.hello.Instance = r.Instance()
	if _, c.hello.Index = placeOf(es); c.hello.Index >= 0 {
		c.hello.Segment, c.hello.Sequence = es.ExecutionTuple.Segment.String(), es.ExecutionTuple.Sequence.String()
		c.hello.Load = loadOf(es)
	}
	ctx, cancel := context.WithTimeout(r.interrupted, c.timeout)
	defer cancel()
	return coordinator.Join(ctx, c.address, c.token, c.hello, func(err error) {
		r.logger.Warnf("%s: %v; trying again for up to %v", envCoordinator, err, c.timeout)
	})
}

// loadOf describes the scenarios, a line each.
func loadOf(es *lib.ExecutionState) string {
	var lines []string
	for _, config := range es.Test.Options.Scenarios.GetSortedConfigs() {
		text, _ := json.Marshal(config) // k6 has read it from JSON
		lines = append(lines, "scenario "+config.GetName()+" "+string(text))
	}
	return strings.Join(lines, "\n")
}

// coordinated waits until the process has joined its test, and returns the error of that.
func (r *run) coordinated(ctx context.Context) error {
	c := r.processes.coordination
	if c == nil {
		return nil
	}
	select {
	case <-c.joined:
		return c.err
	default: // a finished ctx does not matter after joining
	}
	select {
	case <-c.joined:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// siblings returns the other processes of the test; nil if the process has not joined one.
func (r *run) siblings(ctx context.Context) executors.Siblings {
	if client := r.client(ctx); client != nil {
		return client
	}
	return nil
}

// client returns the connection to the coordinator; nil if there is none.
func (r *run) client(ctx context.Context) *coordinator.Client {
	c := r.processes.coordination
	if c == nil || r.coordinated(ctx) != nil {
		return nil
	}
	return c.client
}

// separated returns the error by which the process has lost the other processes.
func (r *run) separated() error {
	c := r.processes.coordination
	if c == nil {
		return nil
	}
	select {
	case <-c.joined:
	default:
		return nil
	}
	if c.err != nil {
		return c.err
	}
	if err := c.client.Lost(); err != nil {
		return c.failed(err)
	}
	return nil
}

// statusPoll is the interval of reading k6's state of the test, which has no event for its
// scenarios.
const statusPoll = 10 * time.Millisecond

// announceScenarios reports to the others when the scenarios of this process begin and end.
func (r *run) announceScenarios(es *lib.ExecutionState) {
	passed := func(status lib.ExecutionStatus) bool {
		for es.GetCurrentExecutionStatus() < status {
			if machine.Timer(r.interrupted, driver.Now()+int64(statusPoll)) != nil {
				return false
			}
		}
		return true
	}
	if !passed(lib.ExecutionStatusRunning) {
		return
	}
	s := r.siblings(r.interrupted)
	if s == nil {
		return
	}
	for _, point := range executors.Beginning(es) {
		s.Reach(point)
	}
	if !passed(lib.ExecutionStatusRunning + 1) {
		return
	}
	for _, point := range executors.Spent {
		s.Reach(point)
	}
}

// compareTimeout bounds the last comparison of the clocks.
const compareTimeout = 5 * time.Second

// part compares the clocks after the load.
func (r *run) part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	if client := r.client(ctx); client != nil {
		client.End(ctx)
	}
}

// describeOthers adds the clock and the missing processes to a result.
func (r *run) describeOthers(to *result.Result) {
	c := r.processes.coordination
	if c == nil || r.separated() != nil || c.client == nil {
		return
	}
	clock, anchor := c.client.Clock(), machine.Anchored()
	to.Clock = &result.Clock{
		Offset: clock.Offset, Bound: clock.Bound, Machine: anchor.Machine, Anchor: anchor.At, AnchorBound: anchor.Error,
	}
	to.Missing = c.client.Missing()
}

// upload sends the results to the coordinator, if there is one.
func (r *run) upload() {
	done, c := r.output.reported.Load(), r.processes.coordination
	if c == nil || done == nil || done.result == nil || r.client(context.Background()) == nil {
		return
	}
	defer c.client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	pack := func(w io.Writer) error { return report.Pack(w, done.result, done.ledger) }
	err := c.client.Upload(ctx, pack, func(err error) {
		r.logger.Warnf("the results cannot be sent to the coordinator yet: %v; trying again for up to %v", err, c.timeout)
	})
	now := *done
	now.sent = err == nil
	if err != nil {
		now.err = errors.Join(
			done.err, fmt.Errorf("the results were not sent to the coordinator: %w; they are in %q", err, done.folder),
		)
	}
	r.output.reported.Store(&now)
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
	done := c.point + ": done"
	switch siblings := c.run.siblings(ctx); {
	case siblings == nil:
	case c.index == 0:
		defer siblings.Reach(done)
	default:
		siblings.Reach(done)
		if _, err := siblings.Await(ctx, done); err != nil {
			return fmt.Errorf("the first process of the test does it before the others: %w", err)
		}
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
	done := c.point + ": done"
	if c.index == 0 {
		defer siblings.Reach(done)
	} else {
		siblings.Reach(done)
	}
	siblings.Reach(c.point)
	if _, err := siblings.Await(ctx, c.point); err != nil {
		return fmt.Errorf("all processes of the test must come to it first: %w", err)
	}
	if c.index == 0 {
		return do()
	}
	if _, err := siblings.Await(ctx, done); err != nil {
		return fmt.Errorf("the first process of the test does it for all: %w", err)
	}
	return nil
}
