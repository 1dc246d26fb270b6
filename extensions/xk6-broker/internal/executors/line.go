package executors

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// line is where idle VUs wait for arrivals, and arrivals for idle VUs.
//
// No scheduler hands arrivals over: waking a goroutine takes time, which would lie between the due moment and the start. Instead one
// idle VU, the sentinel, sleeps until the next arrival is due and serves it itself, and before it does it wakes the VU that has been
// idle for longest, to be the next sentinel. A VU that is done while arrivals wait takes the oldest at once. So the queue is nothing
// but the part of the schedule between the next arrival and now, and takes no memory.
type line struct {
	sleep    func(ctx context.Context, until int64) error
	finished chan struct{} // closed with the last arrival, or when the context ends
	stopped  atomic.Int64  // when the last standstill of the process was over
	agenda   agenda
	nextDue  atomic.Int64  // of the next arrival, by [driver.Now]; [math.MaxInt64] where there is none
	taken    atomic.Uint64 // arrivals
	deepest  atomic.Uint64 // the most arrivals that were ever left waiting

	mu       sync.Mutex
	share    *share
	start    int64 // of the schedule, by [driver.Now]
	open     bool
	over     bool
	sentinel bool  // a VU sleeps until the next arrival
	called   bool  // a VU was woken and has not come yet
	first    *seat // of the idle VUs, in the order they became so
	last     *seat
	blame    blame
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

// join adds a VU.
func (l *line) join(s *seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blame.join(s, driver.Now())
}

// take waits for an arrival and sets s to it. It is false when there are no more, or ctx has ended.
func (l *line) take(ctx context.Context, s *seat) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.over {
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
		case l.sentinel || l.called:
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
	l.blame.of(s, due, now)
	s.granted = now - s.stalled
	s.Index, s.Due, s.Free, s.local = l.share.index(n), due, now-s.own, n
	l.taken.Store(n + 1)
	if l.peek() <= now {
		l.deepen(l.agenda.due(now) - n - 1)
	}
	if !l.sentinel {
		l.call()
	}
}

// watch sleeps until the next arrival is due.
func (l *line) watch(ctx context.Context, s *seat, due int64) {
	l.blame.rest(s)
	l.sentinel = true
	l.mu.Unlock()
	_ = l.sleep(ctx, due) // take looks at ctx again
	l.mu.Lock()
	l.sentinel = false
}

// idle waits until s is called.
func (l *line) idle(s *seat) {
	l.blame.rest(s)
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
	l.over = true
	close(l.finished)
	for ; l.first != nil; l.first = l.first.next {
		l.first.call <- struct{}{}
	}
}

// heartbeat shows to blame that the process runs, and whether it has anything to do, until ctx ends. It need not be precise.
func (l *line) heartbeat(ctx context.Context, sleep func(ctx context.Context, until int64) error, idle func() bool) {
	for next, recovering := driver.Now(), false; sleep(ctx, next) == nil; {
		rests := recovering && idle()
		l.mu.Lock()
		now := driver.Now()
		next = l.blame.pulse(now)
		l.blame.rests(rests, now)
		recovering = l.blame.recovering()
		l.stopped.Store(l.blame.to)
		l.mu.Unlock()
	}
}

// stranded tells whether an arrival waits for a VU that has an iteration.
func (l *line) stranded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due, now := l.nextDue.Load(), driver.Now()
	return due < now && l.blame.innocent(due, now)
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
