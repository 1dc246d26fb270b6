package k6

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// phaseTag is the tag of what was measured in a phase, where the run has any.
const phaseTag = "phase"

const envWarmUp = "BROKER_WARMUP"

var (
	errNoPhase    = errors.New("phase(name): the phase has no name")
	errLateWarmUp = errors.New(`connect: option "warmup" belongs in the init context: the load may have begun`)
)

// warmUp is the time from the first message of a scenario that is in no measured window.
type warmUp struct {
	begun atomic.Bool

	mu     sync.Mutex
	length time.Duration
	set    bool // by the environment, which has precedence
	on     bool
	next   string // the phase that follows
}

// warmUpOf reads what the environment says.
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

// want asks for a warm-up. The longest that any connection asks for is it.
func (w *warmUp) want(length time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.set {
		w.length = max(w.length, length)
	}
}

// asked is how long it is to be; 0 where there is none.
func (w *warmUp) asked() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.length
}

// beginWarmUp begins the first phase of the run, where there is to be a warm-up.
func (r *run) beginWarmUp() {
	r.warmUp.mu.Lock()
	defer r.warmUp.mu.Unlock()
	if r.warmUp.length > 0 {
		r.warmUp.on = true
		_, _ = r.collector.Begin(result.WarmUp) // nothing was measured, and it is the first
	}
}

// warmUpPoll is how exactly the beginning of a warm-up is found.
const warmUpPoll = 5 * time.Millisecond

// watchWarmUp ends the warm-up its length after the first message of a scenario. The first use of a broker by a scenario
// calls it.
func (in *instance) watchWarmUp() {
	r := in.run
	if r.warmUp.begun.Load() || lib.GetScenarioState(in.vu.Context()) == nil || !r.warmUp.begun.CompareAndSwap(false, true) {
		return
	}
	length := r.warmUp.asked()
	if length == 0 {
		return
	}
	messages := func() (n int64) {
		for _, s := range r.All() {
			n += s.Count(recording.Sent) + s.Count(recording.Received)
		}
		return n
	}
	before := messages()
	go func() {
		for messages() == before {
			if machine.Timer(r.interrupted, driver.Now()+int64(warmUpPoll)) != nil {
				return
			}
		}
		if machine.Timer(r.interrupted, driver.Now()+int64(length)) == nil {
			r.endWarmUp()
		}
	}()
}

func (r *run) endWarmUp() {
	r.warmUp.mu.Lock()
	r.warmUp.on = false
	next := cmp.Or(r.warmUp.next, result.Measure)
	r.warmUp.mu.Unlock()
	if err := r.flusher.begin(next); err != nil { // there are not so many yet
		r.logger.Warn(err)
	}
}

// phase begins a phase, or goes on with one of that name. One that is begun during the warm-up begins when that is over.
func (in *instance) phase(text sobek.Value) error {
	name, err := textOf("phase", "the name", text)
	if err != nil {
		return err
	}
	if name = tagValue(name); name == "" {
		return errNoPhase
	}
	if _, err := in.use(); err != nil {
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

// portion is the part of a run that tags ask for: all of it, or a phase.
type portion struct {
	tags     *metrics.TagSet // the others
	result   *result.Result
	seconds  float64
	measured func(*engine.Series) *engine.Measured
}

// portion finds what tags ask for. There is a reason where it is a phase that never was. Where the run has no phases, the tag is the script's own.
func (j *judge) portion(asked *metrics.TagSet) (p portion, why string) {
	p = portion{asked, j.result, j.seconds(), j.measured("")}
	name, ok := asked.Get(phaseTag)
	if !ok || len(j.result.Phases) == 0 {
		return p, ""
	}
	if name == result.Starting {
		return p, "what was before the first phase has no samples of its own: begin a phase at once"
	}
	of := j.result.Phase(name)
	if of == nil {
		return p, fmt.Sprintf("there was no phase %q: there were %s", name, strings.Join(j.result.PhaseNames(), ", "))
	}
	return portion{asked.Without(phaseTag), j.result.During(name), of.Seconds, j.measured(name)}, ""
}

// measured gives what each series measured in a phase, or in the whole run, and finds it out once.
func (j *judge) measured(phase string) func(*engine.Series) *engine.Measured {
	return func(s *engine.Series) *engine.Measured {
		if j.series == nil {
			j.series = map[string]map[*engine.Series]*engine.Measured{}
		}
		all, known := j.series[phase]
		if !known {
			all, _ = j.run.collector.During(phase)
			j.series[phase] = all
		}
		if m := all[s]; m != nil {
			return m
		}
		return &engine.Measured{}
	}
}
