package k6

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/coordinator"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// The environment says how the processes of a test meet.
const (
	envCoordinator        = "BROKER_COORDINATOR"         // http://host:port of k6 x broker coordinator
	envCoordinatorToken   = "BROKER_COORDINATOR_TOKEN"   //gosec:disable G101 -- the name of a variable
	envCoordinatorTimeout = "BROKER_COORDINATOR_TIMEOUT" // how long it is tried
)

// coordinatorTimeout is how long a process tries to join, and to send its results.
const coordinatorTimeout = time.Minute

// coordination is this process's part in a test of several processes that have a coordinator.
type coordination struct {
	address, token string
	timeout        time.Duration
	run, name      string // of the test and of this process

	begun  sync.Once
	joined chan struct{} // closed when what follows is set for good
	client *coordinator.Client
	err    error // why it has not joined
}

// coordinationOf reads what the environment says of a coordinator; nil if there is none.
func coordinationOf(lookup func(string) (string, bool), run string) (*coordination, error) {
	c := &coordination{run: run, timeout: coordinatorTimeout, joined: make(chan struct{})}
	if c.address, _ = lookup(envCoordinator); c.address == "" {
		return nil, nil
	}
	c.token, _ = lookup(envCoordinatorToken)
	if c.name, _ = lookup(envName); c.name == "" {
		c.name, _ = os.Hostname() // it is only to be read
	}
	if text, _ := lookup(envCoordinatorTimeout); text != "" {
		var ok bool
		if c.timeout, ok = driver.ParseDuration(text); !ok || c.timeout <= 0 {
			return nil, fmt.Errorf("%s: %q is no duration such as 1m, more than 0", envCoordinatorTimeout, text)
		}
	}
	return c, nil
}

// meet has the process join the test of its coordinator, if it has one. Only the first call does anything.
func (r *run) meet(es *lib.ExecutionState) {
	c := r.coordination
	if c == nil {
		return
	}
	c.begun.Do(func() {
		executors.Meet(es, r.siblings)
		go func() {
			defer close(c.joined)
			if c.client, c.err = r.joinTest(es); c.err != nil {
				c.err = fmt.Errorf("%s %s: %w", envCoordinator, c.address, c.err)
				return
			}
			r.Call(c.client.Run)
			r.Join(c.client.Processes, c.client.Index)
		}()
		go r.announceScenarios(es)
	})
}

func (r *run) joinTest(es *lib.ExecutionState) (*coordinator.Client, error) {
	c := r.coordination
	hello := coordinator.Hello{Run: c.run, Name: c.name, Instance: r.Instance()}
	if _, hello.Index = placeOf(es); hello.Index >= 0 {
		hello.Segment, hello.Sequence, hello.Load = es.ExecutionTuple.Segment.String(), es.ExecutionTuple.Sequence.String(), loadOf(es)
	}
	ctx, cancel := context.WithTimeout(r.interrupted, c.timeout)
	defer cancel()
	return coordinator.Join(ctx, c.address, c.token, hello, func(err error) {
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

// coordinated returns when the process has joined its test, if it has a coordinator, or why it could not.
func (r *run) coordinated(ctx context.Context) error {
	c := r.coordination
	if c == nil {
		return nil
	}
	select {
	case <-c.joined:
		return c.err
	default: // also if ctx has ended, it may have joined
	}
	select {
	case <-c.joined:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// siblings are the other processes of the test; nil if the process has not joined one.
func (r *run) siblings(ctx context.Context) executors.Siblings {
	if client := r.client(ctx); client != nil {
		return client
	}
	return nil
}

// client returns the connection to the coordinator; nil if there is none.
func (r *run) client(ctx context.Context) *coordinator.Client {
	if r.coordination == nil || r.coordinated(ctx) != nil {
		return nil
	}
	return r.coordination.client
}

// unmet returns why the process has not met the others of its test; nil if it has, or if there are none to meet.
func (r *run) unmet() error {
	c := r.coordination
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
		return fmt.Errorf("%s %s: %w", envCoordinator, c.address, err)
	}
	return nil
}

// beginPoll is how often k6 is looked at, which tells nobody that a test's scenarios begin, or are over.
const beginPoll = 10 * time.Millisecond

// announceScenarios tells the others when the scenarios of this process begin, and when they are over, whichever executors those have.
func (r *run) announceScenarios(es *lib.ExecutionState) {
	for es.GetCurrentExecutionStatus() < lib.ExecutionStatusRunning {
		if machine.Timer(r.interrupted, driver.Now()+int64(beginPoll)) != nil {
			return
		}
	}
	s := r.siblings(r.interrupted)
	if s == nil {
		return
	}
	for _, point := range executors.Beginning(es) {
		s.Reach(point)
	}
	for es.GetCurrentExecutionStatus() == lib.ExecutionStatusRunning {
		if machine.Timer(r.interrupted, driver.Now()+int64(beginPoll)) != nil {
			return
		}
	}
	for _, point := range executors.Spent {
		s.Reach(point)
	}
}

// compareTimeout bounds the last comparison of the clocks.
const compareTimeout = 5 * time.Second

// part compares the clocks once more: the load is over.
func (r *run) part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	if client := r.client(ctx); client != nil {
		client.End(ctx)
	}
}

// met adds to a result what is known of the other processes.
func (r *run) met(to *result.Result) {
	c := r.coordination
	if c == nil || r.unmet() != nil || c.client == nil {
		return
	}
	known, anchor := c.client.Clock(), machine.Anchored()
	to.Clock = &result.Clock{Offset: known.Offset, Bound: known.Bound, Machine: anchor.Machine, Anchor: anchor.At, AnchorBound: anchor.Error}
	to.Missing = c.client.Missing()
}

// unsent is a result that is to go to the coordinator.
type unsent struct {
	result *result.Result
	ledger *account.Ledger
}

// send sends the results to the coordinator, if there is one.
func (r *run) send() {
	done, c := r.reported.Load(), r.coordination
	if c == nil || done == nil || done.unsent == nil || r.client(context.Background()) == nil {
		return
	}
	defer c.client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := c.client.Upload(ctx, func(w io.Writer) error { return report.Pack(w, done.unsent.result, done.unsent.ledger) }, func(err error) {
		r.logger.Warnf("the results cannot be sent to the coordinator yet: %v; trying again for up to %v", err, c.timeout)
	})
	now := &reported{folder: done.folder, err: done.err, sent: err == nil}
	if err != nil {
		where := ""
		if done.folder != "" {
			where = "\nthey are in " + done.folder
		}
		now.err = errors.Join(done.err, fmt.Errorf("the results were not sent to the coordinator: %w%s", err, where))
	}
	r.reported.Store(now)
}
