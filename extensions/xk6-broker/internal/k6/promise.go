package k6

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
)

// settler settles a promise, from any goroutine; only the first call does anything. Its function runs on the event loop and gives the
// value or the error.
type settler func(value func() (any, error))

// promise is what work outside the event loop settles.
type promise struct {
	in              *instance
	verb            string
	enqueue         func(func() error)
	resolve, reject func(any) error

	of            context.Context // the activation of the VU that it belongs to
	before, after *promise        // among those of the VU that are not settled
	settled       bool
}

func (in *instance) promise() (*sobek.Promise, settler) {
	p := &promise{}
	return p.make(in), p.settle
}

// make makes it one that the script can wait for.
func (p *promise) make(in *instance) *sobek.Promise {
	if in.stranded {
		in.vu.RegisterCallback()(in.strand(in.vu.Context()))
		common.Throw(in.vu.Runtime(), errStranded)
	}
	of, resolve, reject := in.vu.Runtime().NewPromise()
	p.in, p.verb, p.enqueue, p.resolve, p.reject = in, in.verb, in.vu.RegisterCallback(), resolve, reject
	in.promises.add(p)
	return of
}

// outcome is what a promise is settled with. It is asked on the event loop.
type outcome interface{ value() (any, error) }

type giver func() (any, error)

func (g giver) value() (any, error) { return g() }

// settle is a [settler].
func (p *promise) settle(value func() (any, error)) { p.settleWith(giver(value)) }

// settleWith leaves the promise pending if the VU's activation has ended: a script that is resumed while k6 interrupts it
// cannot be resumed in a later activation either.
func (p *promise) settleWith(o outcome) {
	if !p.in.promises.remove(p) {
		return
	}
	p.enqueue(func() error {
		if p.of != nil && p.of.Err() != nil {
			return p.of.Err()
		}
		v, err := p.in.attempt(p.verb, o)
		if err != nil {
			return p.reject(p.in.jsError(err))
		}
		return p.resolve(v)
	})
}

// promises are those of a VU that are not settled. k6 waits for each of them, even when the VU's time is over, and some end when a broker
// answers: one that does not would hold the test up for ever.
type promises struct {
	mu   sync.Mutex
	of   context.Context // the activation of the VU
	last *promise
}

// patience is what promises have, when the VU's time is over, to be settled by what they wait for.
const patience = 5 * time.Second

func (l *promises) add(p *promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx := p.in.vu.Context(); ctx != nil && (l.of == nil || l.of.Err() != nil) {
		if l.of != nil {
			p.in.checkResumption()
		}
		of := activation(ctx)
		l.of = of
		context.AfterFunc(of, func() {
			patient, stop := p.in.run.within(p.in.run.patience, interruptedDrain)
			context.AfterFunc(patient, func() {
				stop()
				l.giveUp(of)
			})
		})
	}
	p.of = l.of
	if p.before = l.last; l.last != nil {
		l.last.after = p
	}
	l.last = p
}

// remove reports whether the promise was not settled yet.
func (l *promises) remove(p *promise) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.settled {
		return false
	}
	p.settled = true
	if p.before != nil {
		p.before.after = p.after
	}
	if p.after != nil {
		p.after.before = p.before
	} else {
		l.last = p.before
	}
	p.before, p.after = nil, nil
	return true
}

// giveUp settles what has waited since the VU's time was over, so that k6 waits for it no longer. What it waited for goes on; of a send it is known at the test's end, when the
// producer closes, what became of it.
// Meanwhile the VU may have another activation, whose promises are none of these.
func (l *promises) giveUp(of context.Context) {
	var over []*promise
	l.mu.Lock()
	for p := l.last; p != nil; p = p.before {
		if p.of == of {
			over = append(over, p)
		}
	}
	l.mu.Unlock()
	for _, p := range over {
		err := fmt.Errorf("%s: given up %v after the end of the VU's time: %w", p.verb, p.in.run.patience, context.Canceled)
		if p.in.run.interrupted.Err() != nil {
			err = fmt.Errorf("%s: given up because the test was interrupted: %w", p.verb, context.Canceled)
		}
		p.in.run.stuck.Do(func() { p.in.run.logger.Warn(err) })
		p.settle(func() (any, error) { return nil, err })
	}
}
