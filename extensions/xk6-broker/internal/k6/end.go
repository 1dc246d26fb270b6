package k6

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// This file ends the test and makes its result.

// ending is the state of the end of the test.
type ending struct {
	once  sync.Once
	final atomic.Pointer[result.Result]
}

// k6's global events. Their type is in an internal package; untyped constants fit it.
const (
	eventTestStart = 2
	eventTestEnd   = 3
	eventExit      = 6
)

// subscribe listens for the start of the test, which can be long after the process's, and for its
// end. k6 takes samples and evaluates thresholds until TestEnd is done.
func (r *run) subscribe(vu modules.VU) {
	events := vu.Events().Global
	if events == nil {
		return
	}
	_, ch := events.Subscribe(eventTestStart, eventTestEnd, eventExit)
	go func() {
		for e := range ch {
			switch e.Type {
			case eventTestStart:
				if es := executors.Test(); es != nil {
					r.meet(es)
				}
			case eventTestEnd:
				r.finish()
			case eventExit:
				if r.state.Load() != nil {
					r.finish()
				}
				r.upload()
				r.printTable()
			}
			e.Done()
		}
	}()
}

// Limits of the end of a test.
const (
	interruptedDrain = time.Second      // of each step, if the test was interrupted
	interruptedEnd   = 2 * time.Second  // of all steps, if Ctrl-C interrupted the test
	leaveTimeout     = 20 * time.Second // of the leaving of consumers
)

// hearSignals makes the first Ctrl-C interrupt the run. With the second, k6 ends the process.
func (r *run) hearSignals() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(signals)
		select {
		case <-signals:
			r.interrupt()
		case <-r.interrupted.Done(): // the test has ended
		}
	}()
}

// interrupt stops waiting for brokers.
func (r *run) interrupt() {
	r.StopWaiting()
	r.logger.Infof(
		"interrupted: waiting for up to %v for the answers to %d sends, and for the consumers to leave",
		interruptedDrain+interruptedEnd, r.InFlight(),
	)
	r.stopWaiting()
}

// within returns a context that ends after the limit, or a while after the test was interrupted.
func (r *run) within(limit, afterInterrupt time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	stop := context.AfterFunc(r.interrupted, func() { time.AfterFunc(afterInterrupt, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}

// finish ends the test once.
func (r *run) finish() { r.end.once.Do(r.close) }

// close drains, makes the result and closes everything.
func (r *run) close() {
	state := r.state.Load()
	if state == nil {
		r.closeUnused()
		return
	}
	drain := r.DrainTimeout()
	if state.execution.GetCurrentExecutionStatus() == lib.ExecutionStatusInterrupted {
		drain = min(drain, interruptedDrain)
		r.StopWaiting()
	}
	ctx, cancel := r.within(math.MaxInt64, interruptedEnd)
	defer r.stopWaiting()
	defer cancel()
	r.awaitLeaving(ctx, drain+leaveTimeout)
	err := r.Finish(
		ctx,
		engine.Drain{Limit: drain, Stop: r.interrupted.Done(), Tell: func(topic, group string, missing uint64) {
			r.logger.Infof(
				"%s: %d messages for group %q have not arrived: reading on for up to %v (Ctrl-C ends that)", topic,
				missing, group, drain,
			)
		}},
	)
	r.part(ctx)
	if err != nil {
		r.logger.WithError(err).Warn("the test did not end cleanly")
	}
	r.flusher.halt()
	r.flusher.last()
	ctx, stop := context.WithTimeout(ctx, drain)
	defer stop()
	r.disconnect(ctx)
}

// closeUnused ends a test that never used a broker. Its thresholds on the module's metrics fail.
func (r *run) closeUnused() {
	ctx, cancel := context.WithTimeout(context.Background(), engine.OpenTimeout)
	defer cancel()
	r.part(ctx)
	r.disconnect(ctx)
	result := r.buildResult()
	r.decide(result)
	r.end.final.Store(result)
	for _, t := range result.Thresholds {
		if !t.Held {
			r.logger.Warnf("threshold %s %s fails: no broker was used", t.Metric, t.Source)
		}
	}
}

func (r *run) disconnect(ctx context.Context) {
	if err := r.Disconnect(ctx); err != nil {
		r.logger.WithError(err).Warn("not every connection closed well")
	}
}

// awaitLeaving waits for the consumers of VUs that have just ended.
func (r *run) awaitLeaving(ctx context.Context, limit time.Duration) {
	left := make(chan struct{})
	go func() {
		r.leaving.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-ctx.Done():
		r.logger.Warn("some consumers have not left: the test was interrupted")
	case <-time.After(limit):
		r.logger.Warnf("some consumers did not leave within %v", limit)
	}
}

// result returns the result: after the end always the same, except for k6's checks, which are
// complete later.
func (r *run) result() *result.Result {
	final := r.end.final.Load()
	if final == nil {
		return r.buildResult()
	}
	checked := *final
	checked.Checks = r.checks()
	return &checked
}

func (r *run) resultJSON() ([]byte, error) {
	text, err := json.Marshal(r.result())
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return text, nil
}

// buildResult sums up the run so far.
func (r *run) buildResult() *result.Result { return r.describe(result.New(r.collector.Measured())) }

// unmeasured returns the result so far without its measurements, which the recording has.
func (r *run) unmeasured() *result.Result { return r.describe(result.New(r.collector.Summary(), nil)) }

// describe adds the properties of the test, of k6 and of the machine, and the verdict.
func (r *run) describe(result *result.Result) *result.Result {
	result.Environment = environment()
	result.Test = r.test()
	result.Segment = r.processes.segment
	result.Marks = r.annotations()
	r.describeOthers(result)
	verdict.Judge(result, r.circumstances())
	return result
}

// circumstances returns the facts about k6 and the process that the verdict needs.
func (r *run) circumstances() verdict.Circumstances {
	c := verdict.Circumstances{Dropped: r.dropped(), WarmUp: r.warmUp.asked()}
	for _, scenario := range executors.Totals() {
		c.Unserved += scenario.Unserved
	}
	if state := r.state.Load(); state != nil {
		used, available := machine.CPU()-state.cpu, time.Since(state.began)*time.Duration(runtime.GOMAXPROCS(0))
		c.CPU = min(1, float64(used)/float64(available))
		c.Ended, c.After = endedEarly(state.execution), state.execution.GetCurrentTestRunDuration()
	}
	return c
}

// endedEarly returns the variant of [reason.EndedEarly] for the test; "" for none.
func endedEarly(execution *lib.ExecutionState) string {
	switch status := execution.GetCurrentExecutionStatus(); {
	case status == lib.ExecutionStatusInterrupted, executors.Aborted(execution):
		return "interrupted"
	case status == lib.ExecutionStatusEnded && execution.GetFullIterationCount()+execution.GetPartialIterationCount() == 0:
		return "no-iteration"
	}
	return ""
}
