// Package redial connects again: a [Link] keeps one connection and dials when it is needed and
// after it broke, [Until] opens something as often as it takes, and [Pause] is the one back-off of
// both kinds of driver. None of them retries what a user sent.
package redial

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Pause is how long to wait after the n-th failure in a row, n from 1: 25 ms, twice as long after
// each, and never longer than a second.
func Pause(n int) time.Duration {
	const first, most, doublings = 25 * time.Millisecond, time.Second, 6
	return min(first<<min(max(n-1, 0), doublings), most)
}

// Sleep waits for a [Pause] and reports whether ctx still lives.
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

// Until calls open until it succeeds: at once, and after each failure, which failed hears, after a
// [Pause]. It is false where ctx ended before that.
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

// Link keeps one connection, which is dialed when it is first needed, and again by the next use
// after it broke. Its methods may be called concurrently.
type Link[T any] struct {
	dial   func(context.Context) (T, error)
	broken func(T) bool

	turn chan struct{} // a lock that can be waited for with a context: of who dials, or hangs up
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

// Get gives the connection, and dials where there is none or it broke. Who comes while another
// dials waits for that, and dials only where it has failed. Its errors are those of dial and of
// ctx, and after Close [driver.ErrClosed].
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
		l.last.Store(&c) // where Close came meanwhile, it waits for the turn and finds it
	}
	if l.life.Err() != nil {
		return none, driver.ErrClosed
	}
	return c, err
}

// current is the connection while it is good.
func (l *Link[T]) current() (c T, ok bool) {
	c, ok = l.Last()
	return c, ok && l.life.Err() == nil && !l.broken(c)
}

// Last is the connection that was dialed last, for who only looks: it may have broken or be closed.
// It is false where none was dialed yet.
func (l *Link[T]) Last() (c T, ok bool) {
	if p := l.last.Load(); p != nil {
		return *p, true
	}
	return c, false
}

// Close ends the dialing and has every Get fail from now on. Its error is hangUp's, which closes
// the connection that was dialed last; it is called once, where there was one, and who closes again
// waits for that.
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
