package executors

import (
	"context"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Member is the part of a VU in a scenario of consumers.
type Member struct {
	crew *crew

	mu      sync.Mutex
	opening int
	ready   bool
	busy    bool  // it received messages, and has not asked for more since
	idle    int64 // since when it was not busy, by [driver.Now]
}

type memberKey struct{}

// MemberFrom is the part of the VU whose context ctx is, or comes from. It is false outside scenarios of consumers.
func MemberFrom(ctx context.Context) (*Member, bool) {
	m, ok := ctx.Value(memberKey{}).(*Member)
	return m, ok
}

// Waiting begins a wait of the VU for messages, until done is called with whether any came. Then it is busy until it waits
// again or its iteration ends: it may send on what it received.
func (m *Member) Waiting() (done func(found bool)) {
	m.setBusy(false)
	return func(found bool) {
		if found {
			m.setBusy(true)
		}
	}
}

func (m *Member) setBusy(busy bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy && !busy {
		m.idle = driver.Now()
	}
	m.busy = busy
}

// idleSince returns since when the VU has not been busy: now if it is.
func (m *Member) idleSince(now int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy {
		return now
	}
	return m.idle
}

// Arrived returns when all that was sent has arrived at those who consume, or nothing more can. idle is since when no VU of
// consumers has been busy: now if one is.
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
