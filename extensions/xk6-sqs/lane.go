package sqs

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// outgoing is a message that is not done.
type outgoing struct {
	entry types.SendMessageBatchRequestEntry
	size  int // bytes, of the body and the attributes
	done  driver.Done
	i     int
}

// lane is what waits to be sent, in order.
type lane struct {
	mu     sync.Mutex
	filled sync.Cond
	queue  []outgoing
	closed bool
}

func newLane() *lane {
	l := &lane{}
	l.filled.L = &l.mu
	return l
}

// add puts messages behind the others; once the lane is closed they fail.
func (l *lane) add(all ...outgoing) {
	if len(all) == 0 {
		return
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.queue = append(l.queue, all...)
		l.filled.Signal()
	}
	l.mu.Unlock()
	if closed {
		for _, o := range all {
			o.done(o.i, driver.ErrClosed)
		}
	}
}

// take waits for messages and takes as many as a request may have; none where the lane is closed and empty.
func (l *lane) take(into []outgoing) []outgoing {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 {
		if l.closed {
			return into
		}
		l.filled.Wait()
	}
	n, size := 0, 0
	for n < min(len(l.queue), maxEntries) {
		if size += l.queue[n].size; n > 0 && size > maxBytes {
			break
		}
		n++
	}
	into = append(into, l.queue[:n]...)
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if rest > 0 {
		l.filled.Signal()
	}
	return into
}

// close has no more messages come.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.filled.Broadcast()
}
