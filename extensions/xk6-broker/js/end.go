package js

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// k6's global events. Their type is in an internal package; untyped constants fit it all the same.
const (
	eventTestEnd = 3
	eventExit    = 6
)

// subscribe waits for the end of the test. k6 does not close its flow of samples, nor decide on thresholds, before TestEnd is done.
func (r *run) subscribe(vu modules.VU) {
	events := vu.Events().Global
	if events == nil {
		return
	}
	_, ch := events.Subscribe(eventTestEnd, eventExit)
	go func() {
		for e := range ch {
			switch e.Type {
			case eventTestEnd:
				r.ended.Do(r.end)
				r.over.Store(true)
			case eventExit:
				r.ended.Do(r.end)
				r.printTable()
			}
			e.Done()
		}
	}()
}

// interruptedDrain is how long a test that was interrupted still waits.
const interruptedDrain = time.Second

// end drains, accounts, passes on the last of the metrics and closes everything.
func (r *run) end() {
	state := r.state.Load()
	if state == nil { // nothing was ever used
		return
	}
	drain := time.Duration(r.drainTimeout.Load())
	if state.execution.GetCurrentExecutionStatus() == lib.ExecutionStatusInterrupted {
		drain = min(drain, interruptedDrain)
	}
	ctx := context.Background()
	if err := r.Finish(ctx, drain); err != nil {
		r.logger.WithError(err).Warn("not everything ended well")
	}
	r.flusher.halt()
	r.flusher.flush(true)
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	if err := r.links.close(ctx); err != nil {
		r.logger.WithError(err).Warn("not every connection closed well")
	}
}

// buildResult sums up the run, with what only k6 and the process know.
func (r *run) buildResult() *load.Result {
	result := r.collector.Result()
	result.Environment = environment()
	result.Judge(r.circumstances())
	return result
}

func (r *run) resultJSON() ([]byte, error) {
	text, err := json.Marshal(r.buildResult())
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
		r.logger.WithError(err).Error("cannot print the report")
	}
}
