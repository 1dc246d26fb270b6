package executors

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
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
	full       atomic.Int64 // when the last VU that there may be was added, by [driver.Now]; [growing] until then
	ended      atomic.Int64 // iterations
	spent      atomic.Int64 // by them, ns
	kept       atomic.Int64 // arrivals that waited for one of all VUs that there may be, and not for the process
	loops      sync.WaitGroup
	activation sync.WaitGroup
}

// growing is no time yet at which there were all VUs.
const growing = math.MaxInt64

// add activates a VU. It serves the line until the last arrival, or until the pool's context ends.
func (p *pool) add(vu lib.InitializedVU) {
	s := &seat{Arrival: Arrival{Scenario: p.config.Name}, call: make(chan struct{}, 1), line: p.line}
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
	p.line.join(s)
	p.loops.Go(func() {
		for p.line.take(p.ctx, s) {
			if p.busy.Add(1) == p.allocated.Load() {
				select {
				case p.short <- struct{}{}:
				default: // it is known already
				}
			}
			if s.granted > max(s.Due, p.full.Load()) {
				p.kept.Add(1)
			}
			s.Started = driver.Now()
			p.tally.lag.Record(shard, s.Started-s.Due)
			p.run(active, s)
			s.ended = driver.Now()
			p.spent.Add(s.ended - s.Started)
			p.ended.Add(1)
			p.busy.Add(-1)
		}
	})
}

// run runs an iteration.
func (p *pool) run(vu lib.ActiveVU, s *seat) {
	p.state.ModCurrentlyActiveVUsCount(+1)
	s.running, s.touched, s.waits = true, s.Started, s.waits[:0]
	s.awaits, s.awaited, s.spans = 0, 0, s.spans[:0]
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
	p.full.CompareAndSwap(growing, driver.Now())
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
