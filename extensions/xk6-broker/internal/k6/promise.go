package k6

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
)

// settler settles a promise, from any goroutine. Only the first call has an effect. The function
// runs on the event loop and returns the value or the error.
type settler func(value func() (any, error))

// promise is settled by work outside the event loop.
type promise struct {
	in              *instance
	verb            string
	enqueue         func(func() error)
	resolve, reject func(any) error
	activation      context.Context // of the VU
}

func (in *instance) promise(verb string) (*sobek.Promise, settler) {
	p := &promise{}
	return p.make(in, verb), p.settle
}

// make returns the promise for the script.
func (p *promise) make(in *instance, verb string) *sobek.Promise {
	if in.stranded {
		in.vu.RegisterCallback()(in.strand(in.vu.Context()))
		common.Throw(in.vu.Runtime(), errStranded)
	}
	made, resolve, reject := in.vu.Runtime().NewPromise()
	p.in, p.verb, p.enqueue, p.resolve, p.reject = in, verb, in.vu.RegisterCallback(), resolve, reject
	in.promises.add(p)
	return made
}

// outcome is the value or the error of a promise. It is read on the event loop.
type outcome interface{ value() (any, error) }

type outcomeFunc func() (any, error)

func (f outcomeFunc) value() (any, error) { return f() }

// settle is a [settler].
func (p *promise) settle(value func() (any, error)) { p.settleWith(outcomeFunc(value)) }

// settleWith leaves the promise pending if the VU's activation has ended: a script that is resumed
// while k6 interrupts it cannot be resumed in a later activation either.
func (p *promise) settleWith(o outcome) {
	if !p.in.promises.remove(p) {
		return
	}
	p.enqueue(func() error {
		if p.activation != nil && p.activation.Err() != nil {
			return p.activation.Err()
		}
		v, err := o.value()
		if err != nil {
			return p.reject(p.in.jsError(err))
		}
		return p.resolve(v)
	})
}

// promises are the unsettled ones of a VU. k6 waits for each of them, also after the VU's time.
type promises struct {
	mu         sync.Mutex
	activation context.Context // of the VU
	pending    map[*promise]bool
}

// promiseGrace is how long promises may stay unsettled after the VU's time.
const promiseGrace = 5 * time.Second

func (l *promises) add(p *promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx := p.in.vu.Context(); ctx != nil && (l.activation == nil || l.activation.Err() != nil) {
		if l.activation != nil {
			p.in.checkResumption()
		}
		l.activate(activation(ctx), p.in.run)
	}
	p.activation = l.activation
	if l.pending == nil {
		l.pending = map[*promise]bool{}
	}
	l.pending[p] = true
}

// activate has the promises of an activation settled a while after its end.
func (l *promises) activate(ctx context.Context, r *run) {
	l.activation = ctx
	context.AfterFunc(ctx, func() {
		grace, stop := r.within(r.promiseGrace, interruptedDrain)
		context.AfterFunc(grace, func() {
			stop()
			l.giveUp(ctx)
		})
	})
}

// remove reports whether the promise was unsettled.
func (l *promises) remove(p *promise) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.pending[p]
	delete(l.pending, p)
	return was
}

// giveUp rejects the promises of an activation that are still unsettled, so that k6 stops waiting
// for them. Their work goes on: the account has the outcome of a send when its producer closes.
func (l *promises) giveUp(activation context.Context) {
	var left []*promise
	l.mu.Lock()
	for p := range l.pending {
		if p.activation == activation {
			left = append(left, p)
		}
	}
	l.mu.Unlock()
	for _, p := range left {
		err := fmt.Errorf(
			"%s: given up %v after the end of the VU's time: %w", p.verb, p.in.run.promiseGrace, context.Canceled,
		)
		if p.in.run.interrupted.Err() != nil {
			err = fmt.Errorf("%s: given up because the test was interrupted: %w", p.verb, context.Canceled)
		}
		p.in.run.stuck.Do(func() { p.in.run.logger.Warn(err) })
		p.settle(func() (any, error) { return nil, err })
	}
}
