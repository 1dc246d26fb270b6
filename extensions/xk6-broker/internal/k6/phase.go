package k6

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// This file has the phases of a run, the warm-up, and the marks of scripts.

// phaseTag is the tag of a phase's samples.
const phaseTag = "phase"

const envWarmUp = "BROKER_WARMUP"

var errLateWarmUp = errors.New(`connect: option "warmup" belongs in the init context: the load may have begun`)

// warmUp is the first part of a run, which is not in the measured phase.
type warmUp struct {
	begun atomic.Bool

	mu     sync.Mutex
	length time.Duration
	set    bool // by the environment, which has precedence
	on     bool
	next   string // the phase after it
}

// warmUpOf reads the environment.
func warmUpOf(lookup func(string) (string, bool)) (length time.Duration, set bool, err error) {
	text, ok := lookup(envWarmUp)
	if !ok || text == "" {
		return 0, false, nil
	}
	length, ok = driver.ParseDuration(text)
	if !ok || length < 0 {
		return 0, false, fmt.Errorf(`%s: %q is not a duration such as "30s", 0 or more`, envWarmUp, text)
	}
	return length, true, nil
}

// want asks for a warm-up. The longest of all connections counts.
func (w *warmUp) want(length time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.set {
		w.length = max(w.length, length)
	}
}

// asked returns the length; 0 without a warm-up.
func (w *warmUp) asked() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.length
}

// beginWarmUp begins the phase of the warm-up, if there is one.
func (r *run) beginWarmUp() {
	r.warmUp.mu.Lock()
	defer r.warmUp.mu.Unlock()
	if r.warmUp.length > 0 {
		r.warmUp.on = true
		_, _ = r.collector.Begin(result.WarmUp) // the first phase of a run has no error
	}
}

// warmUpPoll is the precision of a warm-up's start.
const warmUpPoll = 5 * time.Millisecond

// watchWarmUp ends the warm-up its length after the first message of a scenario. A scenario's first
// use of a broker calls it.
func (in *instance) watchWarmUp() {
	r := in.run
	if r.warmUp.begun.Load() || lib.GetScenarioState(in.vu.Context()) == nil ||
		!r.warmUp.begun.CompareAndSwap(false, true) {
		return
	}
	length := r.warmUp.asked()
	if length == 0 {
		return
	}
	before := r.messages()
	go func() {
		for r.messages() == before {
			if machine.Timer(r.interrupted, driver.Now()+int64(warmUpPoll)) != nil {
				return
			}
		}
		if machine.Timer(r.interrupted, driver.Now()+int64(length)) == nil {
			r.endWarmUp()
		}
	}()
}

// messages returns how many were sent and received so far.
func (r *run) messages() (n int64) {
	for _, s := range r.All() {
		n += s.Count(recording.Sent) + s.Count(recording.Received)
	}
	return n
}

func (r *run) endWarmUp() {
	r.warmUp.mu.Lock()
	r.warmUp.on = false
	next := cmp.Or(r.warmUp.next, result.Measure)
	r.warmUp.mu.Unlock()
	if err := r.flusher.begin(next); err != nil {
		r.logger.Warn(err)
	}
}

// phase begins a phase, or continues the one of that name. During the warm-up it waits.
func (in *instance) phase(text sobek.Value) error {
	name, err := in.event("phase", "the name", text)
	if err != nil {
		return err
	}
	w := &in.run.warmUp
	w.mu.Lock()
	waits := w.on
	if waits {
		w.next = name
	}
	w.mu.Unlock()
	if waits {
		return nil
	}
	return in.run.flusher.begin(name)
}

// mark notes an event of the script, such as a stopped broker.
func (in *instance) mark(text sobek.Value) error {
	event, err := in.event("mark", "the text", text)
	if err == nil {
		in.run.remember(event, time.Now())
	}
	return err
}

// event reads the text of an event as a tag can have it.
func (in *instance) event(call, argument string, text sobek.Value) (string, error) {
	event, err := textOf(call, argument, text)
	if err != nil {
		return "", err
	}
	if event = tagValue(event); event == "" {
		return "", fmt.Errorf("%s: %s is empty", call, argument)
	}
	_, err = in.use()
	return event, err
}

// marks are the first annotations of the script, in order.
type marks struct {
	mu  sync.Mutex
	all []result.Annotation
}

// maxMarks bounds the marks in the result.
const maxMarks = 1000

// mark gives k6 a sample of an event, which dashboards show as an annotation.
func (r *run) mark(event string, at time.Time) {
	tags := r.state.Load().runTags.With("mark", event)
	r.push(metrics.Samples{{TimeSeries: metrics.TimeSeries{Metric: r.metrics.marks, Tags: tags}, Time: at, Value: 1}})
}

// remember gives k6 an event and adds it to the result.
func (r *run) remember(event string, at time.Time) {
	r.mark(event, at)
	r.marks.mu.Lock()
	defer r.marks.mu.Unlock()
	if len(r.marks.all) < maxMarks {
		r.marks.all = append(r.marks.all, result.Annotation{At: at.Sub(time.Unix(0, r.Started)).Seconds(), What: event})
	}
}

// annotations returns the events of the script.
func (r *run) annotations() []result.Annotation {
	r.marks.mu.Lock()
	defer r.marks.mu.Unlock()
	return append([]result.Annotation{}, r.marks.all...)
}
