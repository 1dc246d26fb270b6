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
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/coordinator"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// This file has the coordinator of the test's processes, as this process uses it.

// The environment names the coordinator.
const (
	envCoordinator        = "BROKER_COORDINATOR"         // http://host:port of k6 x broker coordinator
	envCoordinatorToken   = "BROKER_COORDINATOR_TOKEN"   //gosec:disable G101 -- the name of a variable
	envCoordinatorTimeout = "BROKER_COORDINATOR_TIMEOUT" // limit of joining, and of the upload
)

// coordinatorTimeout is the default limit of joining, and of the upload.
const coordinatorTimeout = time.Minute

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
			c.err = c.failed(r.joinTest(es))
			close(c.joined)
			if c.err == nil {
				r.announceScenarios(es)
			}
		}()
	})
}

// failed adds the coordinator to an error; nil for nil.
func (c *coordination) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", envCoordinator, c.address, err)
}

func (r *run) joinTest(es *lib.ExecutionState) (err error) {
	c := r.processes.coordination
	c.hello.Instance = r.Instance()
	if _, c.hello.Index = placeOf(es); c.hello.Index >= 0 {
		c.hello.Segment, c.hello.Sequence = es.ExecutionTuple.Segment.String(), es.ExecutionTuple.Sequence.String()
		c.hello.Load = loadOf(es)
	}
	ctx, cancel := context.WithTimeout(r.interrupted, c.timeout)
	defer cancel()
	c.client, err = coordinator.Join(ctx, c.address, c.token, c.hello, func(err error) {
		r.logger.Warnf("%s: %v; trying again for up to %v", envCoordinator, err, c.timeout)
	})
	if err != nil {
		return err
	}
	r.Call(c.client.Run)
	r.Join(c.client.Processes, c.client.Index)
	return nil
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

// isJoined reports whether the process has joined its test, or has failed to.
func (c *coordination) isJoined() bool {
	select {
	case <-c.joined:
		return true
	default:
		return false
	}
}

// client returns the connection once the process has joined its test; nil without a coordinator.
func (r *run) client(ctx context.Context) (*coordinator.Client, error) {
	c := r.processes.coordination
	if c == nil {
		return nil, nil
	}
	if !c.isJoined() { // a finished ctx does not matter after joining
		select {
		case <-c.joined:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c.client, c.err
}

// siblings returns the other processes of the test; nil if the process has not joined one.
func (r *run) siblings(ctx context.Context) executors.Siblings {
	if client, _ := r.client(ctx); client != nil {
		return client
	}
	return nil
}

// separated returns the error by which the process has lost the other processes.
func (r *run) separated() error {
	c := r.processes.coordination
	switch {
	case c == nil || !c.isJoined():
		return nil
	case c.err != nil:
		return c.err
	}
	return c.failed(c.client.Lost())
}

// statusPoll is the interval of reading k6's state of the test, which has no event for its
// scenarios.
const statusPoll = 10 * time.Millisecond

// announceScenarios reports to the others when the scenarios of this process begin and end.
func (r *run) announceScenarios(es *lib.ExecutionState) {
	for _, stage := range []struct {
		status lib.ExecutionStatus
		points []string
	}{
		{lib.ExecutionStatusRunning, executors.Beginning(es)},
		{lib.ExecutionStatusRunning + 1, executors.Spent},
	} {
		for es.GetCurrentExecutionStatus() < stage.status {
			if machine.Timer(r.interrupted, driver.Now()+int64(statusPoll)) != nil {
				return
			}
		}
		for _, point := range stage.points {
			r.processes.coordination.client.Reach(point)
		}
	}
}

// compareTimeout bounds the last comparison of the clocks.
const compareTimeout = 5 * time.Second

// part compares the clocks after the load.
func (r *run) part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	if client, _ := r.client(ctx); client != nil {
		client.End(ctx)
	}
}

// describeOthers adds the clock and the missing processes to a result.
func (r *run) describeOthers(to *result.Result) {
	c := r.processes.coordination
	if c == nil || !c.isJoined() || r.separated() != nil {
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
	if c == nil || done == nil || !c.isJoined() || c.client == nil {
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
	uploaded := *done
	uploaded.sent = err == nil
	if err != nil {
		err = fmt.Errorf("the results were not sent to the coordinator: %w; they are in %q", err, done.folder)
		uploaded.err = errors.Join(done.err, err)
	}
	r.output.reported.Store(&uploaded)
}
