package executor

import (
	"context"
	"sync"
)

// Member is the part of a VU in a scenario of consumers.
type Member struct {
	crew *crew

	mu      sync.Mutex
	opening int
	ready   bool
}

type memberKey struct{}

// MemberFrom is the part of the VU whose context ctx is, or comes from. It is false outside scenarios of consumers.
func MemberFrom(ctx context.Context) (*Member, bool) {
	m, ok := ctx.Value(memberKey{}).(*Member)
	return m, ok
}

// Opening says that the VU is about to open a consumer, and gives what is to be called when that is done or has failed. The VU is ready
// when no consumer that it has begun to open is missing. arrived returns when all that was sent has arrived at those who consume, or
// nothing more can: it is asked when the other scenarios are over.
func (m *Member) Opening(arrived func(context.Context) error) (done func()) {
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
