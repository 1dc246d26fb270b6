package executors

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// pool is the VUs of a scenario while it runs.
type pool struct {
	ctx    context.Context // of all iterations
	abort  func(error)     // ends the test
	config *Config
	state  *lib.ExecutionState
	logger *logrus.Entry
	line   *line
	tally  *tally
	start  int64 // of the schedule

	short      chan struct{} // the last idle VU has gone to work
	allocated  atomic.Int64
	busy       atomic.Int64
	spent      atomic.Int64 // by iterations, ns
	loops      sync.WaitGroup
	activation sync.WaitGroup
}

// add activates a VU. It serves the line until the last arrival, or until the pool's context ends.
func (p *pool) add(vu lib.InitializedVU) {
	s := &seat{Arrival: Arrival{Scenario: p.config.Name}, call: make(chan struct{}, 1), free: driver.Now()}
	p.activation.Add(1)
	active := vu.Activate(&lib.VUActivationParams{
		RunContext: context.WithValue(p.ctx, seatKey{}, s),
		Scenario:   p.config.Name,
		Exec:       p.config.GetExec(),
		Env:        p.config.Env,
		Tags:       p.config.Tags,
		DeactivateCallback: func(vu lib.InitializedVU) {
			p.state.ReturnVU(vu, false)
			p.activation.Done()
		},
		GetNextIterationCounters: func() (uint64, uint64) { return s.local, s.Index },
	})
	shard := uint32(p.allocated.Add(1)) //gosec:disable G115 -- bits, no number
	p.loops.Go(func() {
		for p.line.take(p.ctx, s) {
			if p.busy.Add(1) == p.allocated.Load() {
				select {
				case p.short <- struct{}{}:
				default: // it is known already
				}
			}
			s.Started = driver.Now()
			p.tally.lag.Record(shard, s.Started-s.Due)
			p.run(active, s)
			s.free = driver.Now()
			p.spent.Add(s.free - s.Started)
			p.busy.Add(-1)
		}
	})
}

// run runs an iteration.
func (p *pool) run(vu lib.ActiveVU, s *seat) {
	p.state.ModCurrentlyActiveVUsCount(+1)
	s.running = true
	iterate(p.ctx, p.state, p.logger, vu, p.abort)
	s.running = false
	p.state.ModCurrentlyActiveVUsCount(-1)
}

// grow initialises further VUs, one at a time, while arrivals wait and there may be more.
func (p *pool) grow(ctx context.Context, more int64) {
	for ; more > 0; more-- {
		if p.lack(ctx) != nil {
			return
		}
		vu, err := p.state.GetUnplannedVU(p.ctx, p.logger)
		if err != nil {
			if ctx.Err() == nil {
				p.logger.WithError(err).Error("Error while allocating unplanned VU")
			}
			continue
		}
		p.add(vu)
	}
}

// lack returns when an arrival is due that no VU is free for.
func (p *pool) lack(ctx context.Context) error {
	for {
		// Read in this order, they need no lock: the next arrival is only ever a later one, so one that is due by a time before all VUs
		// were seen busy, and is not taken after that, was due and waited while they were. In any other order the last idle VU may take
		// an arrival between two readings, which then seems to have waited for it.
		now := driver.Now()
		busy := p.busy.Load() == p.allocated.Load()
		due := p.line.nextDue.Load()
		switch {
		case !busy:
			select {
			case <-p.short:
			case <-ctx.Done():
				return ctx.Err()
			}
		case due <= now:
			return nil
		default:
			if err := machine.Timer(ctx, due); err != nil {
				return err
			}
		}
	}
}

// guard ends the test when more arrivals wait than may.
func (p *pool) guard(ctx context.Context, ahead *share) {
	most := p.config.maxQueue()
	for {
		// If no arrival is taken until then, this is when one too many waits.
		at, ok := ahead.at(p.line.taken.Load() + most)
		if !ok || machine.Timer(ctx, p.start+int64(at)) != nil {
			return
		}
		if waiting := p.line.waiting(); waiting > most {
			p.line.deepen(waiting)
			p.abort(p.overflow(waiting, most))
			return
		}
	}
}

func (p *pool) overflow(waiting, most uint64) error {
	err := fmt.Errorf("scenario %s: %d arrivals are due and not started, more than option \"maxQueue\" allows, which is %d; %d of %d VUs are busy: "+
		"give it more VUs (maxVUs), a lower rate, or a greater maxQueue",
		p.config.Name, waiting, most, p.busy.Load(), p.allocated.Load())
	return errext.WithAbortReasonIfNone(errext.WithExitCodeIfNone(err, exitcodes.ScriptAborted), errext.AbortedByScriptAbort)
}

// insufficient describes a lack of VUs; "" if they are as many as iterations run at a time on average.
func (p *pool) insufficient(t ScenarioTotals) string {
	if t.Started == 0 {
		return ""
	}
	plan, _ := p.config.plan() // both were validated
	arrivals, _ := plan.Schedule()
	mean := time.Duration(p.spent.Load() / int64(t.Started)) //gosec:disable G115 -- a count, far below the limit
	busy := math.Ceil(schedule.Peak(arrivals) * mean.Seconds())
	if busy <= float64(p.allocated.Load()) {
		return ""
	}
	return fmt.Sprintf("Insufficient VUs, reached %d active VUs and cannot initialize more. "+
		"At up to %.4g arrivals/s and %v an iteration on average, %.0f are busy: raise maxVUs",
		p.allocated.Load(), schedule.Peak(arrivals), mean.Round(10*time.Microsecond), busy)
}

// iterate runs an iteration and does the bookkeeping that k6 leaves to executors. A script that ends the test ends it by
// abort. It reports whether all went well.
func iterate(ctx context.Context, state *lib.ExecutionState, logger *logrus.Entry, vu lib.ActiveVU, abort func(error)) bool {
	err := vu.RunOnce()
	if ctx.Err() != nil {
		state.AddInterruptedIterations(1)
		return false
	}
	if err != nil {
		if errext.IsInterruptError(err) { // the script's own exec.test.abort
			abort(err)
			state.AddInterruptedIterations(1)
			return false
		}
		text, fields := errext.Format(err)
		logger.WithFields(logrus.Fields(fields)).Error(text)
	}
	state.AddFullIterations(1)
	return err == nil
}
