package executors

import (
	"context"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Member is the state of a VU in a scenario of consumers.
type Member struct {
	crew *crew

	mu      sync.Mutex
	opening int
	ready   bool
	busy    bool  // it received messages and did not ask for more since
	idle    int64 // the time since which it is not busy, by [driver.Now]
}

type memberKey struct{}

// MemberFrom returns the member with the context ctx, false outside scenarios of consumers.
func MemberFrom(ctx context.Context) (*Member, bool) {
	m, ok := ctx.Value(memberKey{}).(*Member)
	return m, ok
}

// Waiting begins a wait for messages, until done is called. If any was found, the VU is busy until
// it waits again or its iteration ends, because it can send on the messages.
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

// idleSince returns the time since which the VU is not busy, now if it is.
func (m *Member) idleSince(now int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy {
		return now
	}
	return m.idle
}

// Arrived returns when all messages have arrived, or no more can. idle returns the time since which
// no VU of consumers is busy, now if one is.
type Arrived = func(ctx context.Context, idle func(now int64) int64) error

// Opening begins to open a consumer, until done is called. The VU is ready when it has opened all
// that it began. arrived is called when the other scenarios are over.
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
			m.setReady()
		}
	}
}

// setReady counts the VU as ready, once.
func (m *Member) setReady() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		m.ready = true
		m.crew.oneReady()
	}
}

// Over ends when there is nothing more to receive. A wait for messages must end then.
func (m *Member) Over() context.Context { return m.crew.closing }
