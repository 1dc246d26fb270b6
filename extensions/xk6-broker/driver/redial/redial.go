// Package redial connects again after a connection broke. It never repeats a message of the user.
package redial

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Pause returns the time to wait after the n-th failure in a row, n from 1: 25 ms, doubled after
// each, at most a second.
func Pause(n int) time.Duration {
	const first, most, doublings = 25 * time.Millisecond, time.Second, 6
	return min(first<<min(max(n-1, 0), doublings), most)
}

// Sleep waits for a [Pause]. It returns false when ctx ends.
func Sleep(ctx context.Context, n int) bool {
	timer := time.NewTimer(Pause(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Until calls open until it succeeds, with a [Pause] after each failure, which is reported to
// failed. It returns false when ctx ends before that.
func Until[T any](ctx context.Context, open func(context.Context) (T, error), failed func(error)) (opened T, ok bool) {
	for n := 1; ctx.Err() == nil; n++ {
		opened, err := open(ctx)
		if err == nil {
			return opened, true
		}
		if ctx.Err() != nil {
			break
		}
		failed(err)
		if !Sleep(ctx, n) {
			break
		}
	}
	return opened, false
}

// Link keeps one connection. The first use dials, and the next use after it broke dials again. Its
// methods may be called concurrently.
type Link[T any] struct {
	dial   func(context.Context) (T, error)
	broken func(T) bool

	turn chan struct{} // a lock to dial and to hang up, whose waiting ends with a context
	last atomic.Pointer[T]
	life context.Context // ends with Close
	end  context.CancelFunc

	closed bool // hung up; guarded by turn
}

// New returns a link without a connection. dial must return soon after its context has ended;
// broken must be quick.
func New[T any](dial func(context.Context) (T, error), broken func(T) bool) *Link[T] {
	l := &Link[T]{dial: dial, broken: broken, turn: make(chan struct{}, 1)}
	l.life, l.end = context.WithCancel(context.Background()) //gosec:disable G118 -- Close calls it
	return l
}

// Get returns the connection, and dials if there is none or it broke. A call during another's dialing
// waits, and dials only if that failed. After Close it returns [driver.ErrClosed].
func (l *Link[T]) Get(ctx context.Context) (T, error) {
	if c, ok := l.current(); ok {
		return c, nil
	}
	var none T
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.life.Done():
		return none, driver.ErrClosed
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if c, ok := l.current(); ok {
		return c, nil
	}
	if l.life.Err() != nil {
		return none, driver.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	c, err := l.dial(ctx)
	if err == nil {
		l.last.Store(&c) // a concurrent Close waits for the turn and finds it
	}
	if l.life.Err() != nil {
		return none, driver.ErrClosed
	}
	return c, err
}

// current returns the connection if it is usable.
func (l *Link[T]) current() (c T, ok bool) {
	c, ok = l.Last()
	return c, ok && l.life.Err() == nil && !l.broken(c)
}

// Last returns the connection that was dialed last, which may be broken or closed; false if none was
// dialed yet.
func (l *Link[T]) Last() (c T, ok bool) {
	if p := l.last.Load(); p != nil {
		return *p, true
	}
	return c, false
}

// Close ends dialing, makes every Get fail, and calls hangUp once for the last connection, if there
// is one. A second Close waits for that.
func (l *Link[T]) Close(hangUp func(T) error) error {
	l.end()
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	c, ok := l.Last()
	if !ok || l.closed {
		return nil
	}
	l.closed = true
	return hangUp(c)
}
