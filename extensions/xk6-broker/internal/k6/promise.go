package k6

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/grafana/sobek"
)

// settler settles a promise, from any goroutine. Only the first call has an effect. An [outcome] is
// computed on the event loop.
type settler func(value any, err error)

// outcome returns the value or the error of a promise.
type outcome func() (any, error)

// promise is settled by work outside the event loop.
type promise struct {
	in              *instance
	verb            string
	enqueue         func(func() error)
	resolve, reject func(any) error
	activation      context.Context // of the VU
}

// promise returns a promise for the script, of the call of a verb.
func (in *instance) promise(verb string) (*sobek.Promise, settler) {
	made, resolve, reject := in.vu.Runtime().NewPromise()
	p := &promise{in: in, verb: verb, enqueue: in.vu.RegisterCallback(), resolve: resolve, reject: reject}
	in.promises.add(p)
	return made, p.settle
}

// settle is a [settler]. It leaves the promise pending if the VU's activation has ended: a script
// that is resumed while k6 interrupts it cannot be resumed in a later activation either.
func (p *promise) settle(value any, err error) {
	if !p.in.promises.remove(p) {
		return
	}
	p.enqueue(func() error {
		if p.activation != nil && p.activation.Err() != nil {
			return p.activation.Err()
		}
		result, err := value, err
		if compute, ok := value.(outcome); ok {
			result, err = compute()
		}
		if err != nil {
			return p.reject(p.in.jsError(err))
		}
		return p.resolve(result)
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
		err := fmt.Errorf("%s: given up: the VU's time has ended: %w", p.verb, context.Canceled)
		p.in.run.stuck.Do(func() { p.in.run.logger.Warn(err) })
		p.settle(nil, err)
	}
}
