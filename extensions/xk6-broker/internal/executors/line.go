package executors

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// line is where idle VUs wait for arrivals, and arrivals for idle VUs.
//
// No scheduler hands arrivals over, because waking a goroutine takes time. One idle VU, the sentinel, sleeps until the
// next arrival is due and serves it itself; before that it wakes the VU that has been idle for longest, to be the next
// sentinel. A VU that becomes free while arrivals wait takes the oldest at once. So the queue is the part of the schedule
// between the next arrival and now, and takes no memory.
type line struct {
	sleep    func(ctx context.Context, until int64) error
	finished chan struct{} // closed with the last arrival, or when the context ends
	agenda   agenda
	nextDue  atomic.Int64  // of the next arrival, by [driver.Now]; [math.MaxInt64] if there is none
	taken    atomic.Uint64 // arrivals
	deepest  atomic.Uint64 // the most arrivals that were ever left waiting

	mu       sync.Mutex
	share    *share
	start    int64 // of the schedule, by [driver.Now]
	open     bool
	ended    bool
	sentinel *seat // the VU that sleeps until the next arrival
	called   bool  // a VU was woken and has not come yet
	first    *seat // of the idle VUs, in the order they became so
	last     *seat
}

func newLine(mine, clocks *share, sleep func(ctx context.Context, until int64) error) *line {
	return &line{sleep: sleep, finished: make(chan struct{}), share: mine, agenda: agenda{share: clocks}}
}

// begin starts the schedule.
func (l *line) begin(start int64) {
	l.agenda.begin(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.open = start, true
	l.peek()
	l.call()
}

// peek finds out when the next arrival is due.
func (l *line) peek() int64 {
	due := int64(math.MaxInt64)
	if at, ok := l.share.at(l.taken.Load()); ok {
		due = l.start + int64(at)
	}
	l.nextDue.Store(due)
	return due
}

// take waits for an arrival and sets s to it. It is false when there are no more, or ctx has ended.
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
			l.serve(s, due, now)
			return true
		case l.sentinel != nil || l.called:
			l.idle(s)
		default:
			l.watch(ctx, s, due)
		}
	}
	return false
}

// serve gives the next arrival to s, and sees to it that another VU looks after the one that follows.
func (l *line) serve(s *seat, due, now int64) {
	n := l.taken.Load()
	free := s.free
	for _, idle := range []*seat{l.sentinel, l.first} {
		if idle != nil {
			free = min(free, idle.free)
		}
	}
	s.Index, s.Due, s.Free, s.local = l.share.index(n), due, max(due, free), n
	l.taken.Store(n + 1)
	if l.peek() <= now {
		l.deepen(l.agenda.due(now) - n - 1)
	}
	if l.sentinel == nil {
		l.call()
	}
}

// watch sleeps until the next arrival is due.
func (l *line) watch(ctx context.Context, s *seat, due int64) {
	l.sentinel = s
	l.mu.Unlock()
	_ = l.sleep(ctx, due) // take looks at ctx again
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

// call wakes the VU that has been idle for longest, unless one is on its way.
func (l *line) call() {
	if s := l.first; s != nil && !l.called {
		l.called, l.first = true, s.next
		s.call <- struct{}{}
	}
}

// end sends all VUs away.
func (l *line) end() {
	l.ended = true
	close(l.finished)
	for ; l.first != nil; l.first = l.first.next {
		l.first.call <- struct{}{}
	}
}

// deepen notes how many arrivals wait.
func (l *line) deepen(waiting uint64) {
	for was := l.deepest.Load(); waiting > was && !l.deepest.CompareAndSwap(was, waiting); was = l.deepest.Load() {
	}
}

// waiting is how many arrivals are due and not taken.
func (l *line) waiting() uint64 {
	taken := l.taken.Load() // first, or an arrival might be taken that was not yet due
	return max(l.agenda.due(driver.Now()), taken) - taken
}

// agenda counts the arrivals that are due. It has a share of its own, and only goes forward in it.
type agenda struct {
	mu    sync.Mutex
	share *share
	start int64
	n     uint64
	next  int64
	more  bool
	end   int64 // nothing is due after it
}

func (a *agenda) begin(start int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start, a.end = start, math.MaxInt64
	a.look()
}

func (a *agenda) look() {
	var at time.Duration
	at, a.more = a.share.at(a.n)
	a.next = a.start + int64(at)
}

// due returns how many arrivals are due at the given time, or at the latest that was ever asked for.
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
