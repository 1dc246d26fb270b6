package executors

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// Arrival is the arrival that an iteration serves. Times are by [driver.Now].
type Arrival struct {
	Index    uint64 // in the scenario, from 0, over all execution segments
	Due      int64
	Started  int64
	Free     int64 // when a VU was free for it, Due or later
	Scenario string
}

// seat has a VU's present arrival. Only the VU's goroutine uses it, so that an iteration needs no
// lock and no allocation.
type seat struct {
	Arrival

	local   uint64 // the arrival's number within this process's share
	running bool
	free    int64         // the time since which the VU is free
	call    chan struct{} // wakes the VU; holds one
	next    *seat         // of the idle ones
}

type seatKey struct{}

// FromContext returns the arrival of the running iteration of a VU, false outside iterations of
// open-arrival-rate. Only the VU's goroutine can call it.
func FromContext(ctx context.Context) (Arrival, bool) {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok || !s.running {
		return Arrival{}, false
	}
	return s.Arrival, true
}

// line is the place where idle VUs wait for arrivals, and arrivals for idle VUs.
//
// There is no scheduler, because waking a goroutine takes time. One idle VU, the sentinel, sleeps
// until the next arrival is due and serves it. Before that it wakes the VU that was idle for
// longest, which is the next sentinel. A VU that becomes free while arrivals wait takes the oldest.
// So the queue is the part of the schedule between the next arrival and now, and takes no memory.
type line struct {
	sleep    func(ctx context.Context, until int64) error
	finished chan struct{} // closed with the last arrival, or when the context ends
	agenda   agenda
	nextDue  atomic.Int64  // of the next arrival, by [driver.Now]; [math.MaxInt64] if there is none
	taken    atomic.Uint64 // arrivals

	mu       sync.Mutex
	all      schedule.Schedule // of the whole scenario
	share    schedule.Share
	arrivals schedule.Schedule
	start    int64 // of the schedule, by [driver.Now]
	open     bool
	ended    bool
	sentinel *seat // the VU that sleeps until the next arrival
	called   bool  // a VU was woken and is not here yet
	first    *seat // of the idle VUs, in the order they became so
	last     *seat
}

func newLine(all schedule.Schedule, share schedule.Share, sleep func(ctx context.Context, until int64) error) *line {
	l := &line{sleep: sleep, finished: make(chan struct{}), all: all, share: share}
	l.arrivals, l.agenda.arrivals = l.fork(), l.fork()
	return l
}

// fork returns the arrivals for another goroutine.
func (l *line) fork() schedule.Schedule { return l.share.Of(l.all) }

// begin starts the schedule.
func (l *line) begin(start int64) {
	l.agenda.begin(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.open = start, true
	l.peek()
	l.call()
}

// peek reads the due time of the next arrival.
func (l *line) peek() {
	due := int64(math.MaxInt64)
	if at, ok := l.arrivals.At(l.taken.Load()); ok {
		due = l.start + int64(at)
	}
	l.nextDue.Store(due)
}

// take waits for an arrival and sets s to it. It is false after the last one, or if ctx has ended.
func (l *line) take(ctx context.Context, s *seat) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.ended {
		due := l.nextDue.Load()
		now := driver.Now()
		switch {
		case !l.open:
			l.idle(s)
		case due == math.MaxInt64 || ctx.Err() != nil:
			l.end()
		case due <= now:
			l.serve(s, due)
			return true
		case l.sentinel != nil || l.called:
			l.idle(s)
		default:
			l.watch(ctx, s, due)
		}
	}
	return false
}

// serve gives the next arrival to s, and wakes another VU for the one after it.
func (l *line) serve(s *seat, due int64) {
	n := l.taken.Load()
	free := s.free
	for _, idle := range []*seat{l.sentinel, l.first} {
		if idle != nil {
			free = min(free, idle.free)
		}
	}
	s.Index, s.Due, s.Free, s.local = l.share.Index(n), due, max(due, free), n
	l.taken.Store(n + 1)
	l.peek()
	if l.sentinel == nil {
		l.call()
	}
}

// watch sleeps until the next arrival is due.
func (l *line) watch(ctx context.Context, s *seat, due int64) {
	l.sentinel = s
	l.mu.Unlock()
	_ = l.sleep(ctx, due) // take reads ctx
	l.mu.Lock()
	l.sentinel = nil
}

// idle waits until s is called.
func (l *line) idle(s *seat) {
	s.next = nil
	if l.first == nil {
		l.first = s
	} else {
		l.last.next = s
	}
	l.last = s
	l.mu.Unlock()
	<-s.call
	l.mu.Lock()
	l.called = false
}

// call wakes the VU that was idle for longest, unless one was woken already.
func (l *line) call() {
	if s := l.first; s != nil && !l.called {
		l.called, l.first = true, s.next
		s.call <- struct{}{}
	}
}

// end wakes all VUs, after the last arrival.
func (l *line) end() {
	l.ended = true
	close(l.finished)
	for ; l.first != nil; l.first = l.first.next {
		l.first.call <- struct{}{}
	}
}

// waiting returns the number of arrivals that are due and not taken.
func (l *line) waiting() uint64 {
	taken := l.taken.Load() // first, so that it is not greater
	return max(l.agenda.due(driver.Now()), taken) - taken
}

// agenda counts the arrivals that are due. It only goes forward.
type agenda struct {
	mu       sync.Mutex
	arrivals schedule.Schedule
	start    int64
	n        uint64
	next     int64 // the due time of arrival n
	more     bool
	end      int64 // nothing is due after it
}

func (a *agenda) begin(start int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start, a.end = start, math.MaxInt64
	a.look()
}

func (a *agenda) look() {
	var at time.Duration
	at, a.more = a.arrivals.At(a.n)
	a.next = a.start + int64(at)
}

// due returns the number of arrivals that are due at now, or at the latest now so far.
func (a *agenda) due(now int64) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for now = min(now, a.end); a.more && a.next <= now; {
		a.n++
		a.look()
	}
	return a.n
}

// stop makes now the time after which nothing is due.
func (a *agenda) stop(now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end = now
}
