package rocketmq

import (
	"sync"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// pending is a message that waits to be sent.
type pending struct {
	message *v2.Message
	index   int
	done    driver.Done
}

// lane is what waits for a request, in its order.
type lane struct {
	mu     sync.Mutex
	some   *sync.Cond
	queue  []pending
	first  int
	closed bool
}

func newLane(window int) *lane {
	l := &lane{queue: make([]pending, 0, min(window, 1<<10))}
	l.some = sync.NewCond(&l.mu)
	return l
}

// put adds a message; it never waits, since there are no more than the window.
func (l *lane) put(m pending) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return driver.ErrClosed
	}
	if l.first > 0 && len(l.queue) == cap(l.queue) {
		rest := copy(l.queue, l.queue[l.first:])
		clear(l.queue[rest:])
		l.queue, l.first = l.queue[:rest], 0
	}
	l.queue = append(l.queue, m)
	l.some.Signal()
	return nil
}

// take appends up to so many messages to the given ones, and waits for the first; none when the lane is closed and empty.
func (l *lane) take(into []pending, most int) []pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.first == len(l.queue) {
		if l.closed {
			return into
		}
		l.some.Wait()
	}
	n := min(most, len(l.queue)-l.first)
	into = append(into, l.queue[l.first:l.first+n]...)
	clear(l.queue[l.first : l.first+n])
	if l.first += n; l.first == len(l.queue) {
		l.queue, l.first = l.queue[:0], 0
	}
	return into
}

// close has no more put; what waits is still taken.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.some.Broadcast()
}
