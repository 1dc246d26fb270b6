package inbox

import (
	"context"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Room is the free part of a consumer's prefetch: without messages that are on their way, queued,
// or received and not settled. Any number of goroutines may use it.
type Room struct {
	mu      sync.Mutex
	changed sync.Cond
	free    int
	closed  bool
}

// NewRoom returns a Room for so many messages.
func NewRoom(messages int) *Room {
	r := &Room{free: messages}
	r.changed.L = &r.mu
	return r
}

// Reserve waits for room for at least so many messages, takes it for at most so many, and returns
// for how many. It returns ctx's error and, after Close, [driver.ErrClosed].
func (r *Room) Reserve(ctx context.Context, least, most int) (int, error) {
	defer context.AfterFunc(ctx, func() { r.Give(0) })()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.free < least && !r.closed && ctx.Err() == nil {
		r.changed.Wait()
	}
	if r.closed {
		return 0, driver.ErrClosed
	}
	if r.free < least {
		return 0, ctx.Err()
	}
	n := min(r.free, most)
	r.free -= n
	return n, nil
}

// Take takes room for messages that arrived without a reservation.
func (r *Room) Take(messages int) { r.Give(-messages) }

// Give gives back the room of messages that did not come, or are done.
func (r *Room) Give(messages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += messages
	r.changed.Broadcast()
}

// Free returns for how many messages there is room; negative if too many came.
func (r *Room) Free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.free
}

// Close ends every Reserve.
func (r *Room) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.changed.Broadcast()
}
