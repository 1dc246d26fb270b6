package nats

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// replies matches answers to requests: PubAcks to messages, and confirmations to acknowledgments.
// Each request has a slot, whose number is the last part of the reply subject. nats.go's
// PublishAsync loses pending messages when the connection closes, and costs ten allocations a
// message.
type replies struct {
	timeout time.Duration
	late    error // what a question fails with after timeout
	meaning meaning
	sub     *nats.Subscription
	prefix  string

	mu      sync.Mutex
	slots   []slot
	free    []uint32
	pending int
	armed   bool
	timer   *time.Timer
	closed  bool
	idle    chan struct{} // closed when closed and nothing is pending
}

// meaning returns the result of an answer, and fills the place if it is not nil.
type meaning func(*nats.Msg, *driver.Place) error

// slot is one question. Its subject is made anew only when an answer may still come to the old one.
type slot struct {
	done     driver.Done // nil while the slot is free
	index    int
	place    *driver.Place // to be filled; nil where nobody asks
	deadline int64         // by driver.Now
	round    uint32
	subject  string
}

// ticket names a slot in one of its rounds.
type ticket struct{ number, round uint32 }

func newReplies(nc *nats.Conn, timeout time.Duration, late error, meaning meaning) (*replies, error) {
	inbox := nc.NewInbox()
	r := &replies{timeout: timeout, late: late, meaning: meaning, prefix: inbox + ".", idle: make(chan struct{})}
	r.timer = time.AfterFunc(time.Hour, r.expire)
	r.timer.Stop()
	var err error
	if r.sub, err = nc.Subscribe(inbox+".*", r.answer); err != nil {
		return nil, err
	}
	// A dropped answer would be reported as a timeout. The window limits the pending ones.
	return r, r.sub.SetPendingLimits(-1, -1)
}

// expect takes a slot for question index and returns the subject to answer to.
func (r *replies) expect(index int, done driver.Done, place *driver.Place, now int64) (string, ticket, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", ticket{}, driver.ErrClosed
	}
	if len(r.free) == 0 {
		r.free = append(r.free, uint32(len(r.slots))) //gosec:disable G115 -- a count, far below the limit
		r.slots = append(r.slots, slot{})
	}
	number := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	s := &r.slots[number]
	if s.subject == "" {
		s.subject = r.prefix + strconv.FormatUint(uint64(s.round)<<32|uint64(number), 36)
	}
	s.done, s.index, s.place, s.deadline = done, index, place, now+int64(r.timeout)
	r.pending++
	if !r.armed {
		r.armed = true
		r.timer.Reset(r.timeout)
	}
	return s.subject, ticket{number, s.round}, nil
}

// answer is nats.go's callback.
func (r *replies) answer(msg *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(msg.Subject, r.prefix), 36, 64)
	if err != nil {
		return // not a subject of ours
	}
	if done, index, place := r.take(ticket{uint32(token), uint32(token >> 32)}, false); done != nil { //gosec:disable G115 -- bits, no number
		done(index, r.meaning(msg, place))
	}
}

// resolve ends a question that no answer will come to, or that is not waited for any longer.
func (r *replies) resolve(t ticket, err error) {
	if done, index, _ := r.take(t, true); done != nil {
		done(index, err)
	}
}

func (r *replies) take(t ticket, mayComeYet bool) (driver.Done, int, *driver.Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(t.number) >= len(r.slots) || r.slots[t.number].round != t.round {
		return nil, 0, nil
	}
	return r.release(t.number, mayComeYet)
}

// release frees a slot and returns its functions; nil if it was free. The lock is held.
func (r *replies) release(number uint32, mayComeYet bool) (driver.Done, int, *driver.Place) {
	s := &r.slots[number]
	done, place := s.done, s.place
	if done == nil {
		return nil, 0, nil
	}
	s.done, s.place = nil, nil
	if mayComeYet {
		s.round++
		s.subject = ""
	}
	r.free = append(r.free, number)
	if r.pending--; r.pending == 0 && r.closed {
		close(r.idle)
	}
	return done, s.index, place
}

// expire fails requests that have waited too long.
func (r *replies) expire() {
	now, next := driver.Now(), int64(0)
	var late []func()
	r.mu.Lock()
	for number := range r.slots {
		s := &r.slots[number]
		switch {
		case s.done == nil:
		case s.deadline <= now:
			done, index, _ := r.release(uint32(number), true)
			late = append(late, func() { done(index, r.late) })
		case next == 0 || s.deadline < next:
			next = s.deadline
		}
	}
	if r.armed = next != 0; r.armed {
		r.timer.Reset(time.Duration(next - now))
	}
	r.mu.Unlock()
	for _, tell := range late {
		tell()
	}
}

// fail ends every question that is pending.
func (r *replies) fail(err error) {
	var all []func()
	r.mu.Lock()
	for number := range r.slots {
		if done, index, _ := r.release(uint32(number), true); done != nil {
			all = append(all, func() { done(index, err) })
		}
	}
	r.mu.Unlock()
	for _, tell := range all {
		tell()
	}
}

// close waits for every answer, and fails the pending requests when ctx ends.
func (r *replies) close(ctx context.Context) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.closed = true
	if r.pending == 0 {
		close(r.idle)
	}
	r.mu.Unlock()
	select {
	case <-r.idle:
	case <-ctx.Done():
		r.fail(ctx.Err())
	}
	r.timer.Stop()
	_ = r.sub.Unsubscribe()
}
