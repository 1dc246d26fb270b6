package executors

import (
	"context"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Member is the part of a VU in a scenario of consumers.
type Member struct {
	crew *crew

	mu      sync.Mutex
	opening int
	ready   bool

	iterating bool
	waiting   int   // receives
	since     int64 // when the first of them began, by [driver.Now]
	found     bool  // something has come since it last began to wait
	laden     bool  // it may have something in hand: since something came it has not found nothing and asked again at once
	nothing   bool  // what it waited for last did not come
	working   int64 // since when it runs an iteration and does not wait; 0 where that is not so
	idle      int64 // since when it has not, but for a moment now and then
}

type memberKey struct{}

// MemberFrom is the part of the VU whose context ctx is, or comes from. It is false outside scenarios of consumers.
func MemberFrom(ctx context.Context) (*Member, bool) {
	m, ok := ctx.Value(memberKey{}).(*Member)
	return m, ok
}

const (
	// briefly is how long a VU that has found nothing may do something else and still be one that waits: it polls.
	briefly = 50 * time.Millisecond
	// collecting is how long a VU that has got something and asks for more may have that in hand: some collect what comes, and work on it
	// when no more does.
	collecting = 2 * time.Second
)

// Waiting says that the VU waits for messages, until done is called with whether any came. Else it is at work: it may send on what it got.
func (m *Member) Waiting() (done func(found bool)) { return m.wait(false) }

// Looping says that a loop receives and works for the VU, until done is called with whether any messages came.
func (m *Member) Looping() (done func(found bool)) { return m.wait(true) }

func (m *Member) wait(loop bool) (done func(found bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting++; m.waiting == 1 {
		m.since = driver.Now()
	}
	if m.rest() && m.nothing || loop {
		m.laden = false
	}
	return func(found bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waiting--
		m.found, m.nothing = m.found || found, !found
		m.laden = m.laden || found
		m.work()
	}
}

// iterates says that an iteration begins or ends.
func (m *Member) iterates(now bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.iterating, m.waiting = now, 0 // nothing outlives its iteration
	if now {
		m.work()
	} else if !m.rest() {
		m.nothing = false
	}
}

// work begins, where nothing is waited for or something has come. The lock is held.
func (m *Member) work() {
	if m.iterating && (m.waiting == 0 || m.found) && m.working == 0 {
		m.working = driver.Now()
	}
}

// rest ends work, and tells whether there was hardly any. The lock is held.
func (m *Member) rest() (hardly bool) {
	now := driver.Now()
	if hardly = m.working == 0 || !m.found && now-m.working <= int64(briefly); !hardly {
		m.idle = now
	}
	m.working, m.found = 0, false
	return hardly
}

// idleSince is since when the VU has waited for messages: now where it is at work.
func (m *Member) idleSince(now int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.working != 0 && (m.found || now-m.working > int64(briefly)):
		return now
	case !m.laden:
		return m.idle
	case m.waiting == 0 || now-m.since < int64(collecting):
		return now
	}
	return m.since
}

// Arrived returns when all that was sent has arrived at those who consume, or nothing more can. idle is since when all VUs of consumers wait
// for messages: now where one is at work.
type Arrived = func(ctx context.Context, idle func(now int64) int64) error

// Opening says that the VU is about to open a consumer, and gives what is to be called when that is done or has failed. The VU is ready
// when no consumer that it has begun to open is missing. arrived is asked when the other scenarios are over.
func (m *Member) Opening(arrived Arrived) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crew.arrived.CompareAndSwap(nil, &arrived)
	if m.ready {
		return func() {}
	}
	m.opening++
	return func() {
		m.mu.Lock()
		m.opening--
		last := m.opening == 0
		m.mu.Unlock()
		if last {
			m.isReady()
		}
	}
}

// isReady notes, once, that the VU is ready.
func (m *Member) isReady() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		m.ready = true
		m.crew.oneReady()
	}
}

// Over ends when there is nothing more to receive: a wait for messages is to end then.
func (m *Member) Over() context.Context { return m.crew.over }
