package k6

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// k6's global events. Their type is in an internal package; untyped constants fit it all the same.
const (
	eventTestStart = 2
	eventTestEnd   = 3
	eventExit      = 6
)

// subscribe waits for the start of the test, which may be before k6 is told to go on where it stands paused, and for its end. k6 does not close its flow of samples, nor decide on thresholds, before TestEnd is done.
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
				r.ended.Do(r.end)
				r.over.Store(true)
			case eventExit:
				if r.state.Load() != nil {
					r.ended.Do(r.end)
				}
				r.send()
				r.printTable()
			}
			e.Done()
		}
	}()
}

// Limits of the end of a test.
const (
	interruptedDrain = time.Second      // each step, if the test was interrupted
	interruptedEnd   = 2 * time.Second  // all steps, if Ctrl-C interrupted the test
	leaveTimeout     = 20 * time.Second // the leaving of consumers when nothing is late
)

// hearSignals has the first Ctrl-C interrupt the run. k6 hears signals too: the second one ends the process.
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

// interrupt has nothing wait for a broker that does not answer.
func (r *run) interrupt() {
	r.StopWaiting()
	r.logger.Infof("interrupted: waiting for up to %v for the answers to %d sends, and for the consumers to leave", interruptedDrain+interruptedEnd, r.InFlight())
	r.stopWaiting()
}

// within is a context that ends after the limit, or a while after the test was interrupted.
func (r *run) within(limit, afterInterrupt time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	stop := context.AfterFunc(r.interrupted, func() { time.AfterFunc(afterInterrupt, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}

// end drains, accounts, passes on the last of the metrics and closes everything. What is known of the run is final then.
func (r *run) end() {
	state := r.state.Load()
	if state == nil {
		ctx, cancel := context.WithTimeout(context.Background(), engine.OpenTimeout)
		defer cancel()
		r.part(ctx)
		r.disconnect(ctx)
		r.endUnused()
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
	err := r.Finish(ctx, engine.Drain{Limit: drain, Stop: r.interrupted.Done(), Tell: func(topic, group string, missing uint64) {
		r.logger.Infof("%s: %d messages for group %q have not arrived: reading on for up to %v (Ctrl-C ends that)", topic, missing, group, drain)
	}})
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

func (r *run) disconnect(ctx context.Context) {
	if err := r.Disconnect(ctx); err != nil {
		r.logger.WithError(err).Warn("not every connection closed well")
	}
}

// endUnused ends a test that never used a broker. Should it set thresholds on the module's metrics, there is nothing to judge them by.
func (r *run) endUnused() {
	result := r.buildResult()
	r.decide(result)
	r.final.Store(result)
	for _, t := range result.Thresholds {
		if !t.Judged {
			r.logger.Warnf("threshold %s %s could not be judged, and fails: %s", t.Metric, t.Source, t.Why)
		}
	}
}

// awaitLeaving waits for the consumers of VUs that have just been deactivated.
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

// result is what is known of the run: once it has ended, always the same.
func (r *run) result() *result.Result {
	final := r.final.Load()
	if final == nil {
		return r.buildResult()
	}
	checked := *final // of its checks k6 has the last only after the end
	checked.Checks = r.checks()
	return &checked
}

// buildResult sums up the run, with what only k6 and the process know.
func (r *run) buildResult() *result.Result {
	result := r.collector.Result()
	r.describe(result)
	verdict.Judge(result, r.circumstances())
	return result
}

// unmeasured is what is known of the run without what its recording has.
func (r *run) unmeasured() *result.Result {
	result := r.collector.Unmeasured()
	r.describe(result)
	verdict.Judge(result, r.circumstances()) // which it has; the verdict is that of who reads it
	return result
}

// describe adds what only k6 and the process know.
func (r *run) describe(result *result.Result) {
	result.Environment = environment()
	result.Test = r.test()
	result.Segment = r.segment
	result.Marks = r.marked()
	r.met(result)
}

func (r *run) resultJSON() ([]byte, error) {
	text, err := json.Marshal(r.result())
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return text, nil
}

// printTable prints the latency table after k6's own summary, and where the results were written.
func (r *run) printTable() {
	if r.state.Load() == nil || r.quiet {
		return
	}
	if err := r.printReport(); err != nil {
		r.logger.Error(err)
	}
}
