package inbox

import (
	"context"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Room is the free part of a consumer's prefetch: without messages that are on their way, queued,
// or received and not settled. Any number of goroutines may use it.
type Room struct {
	mu     sync.Mutex
	free   int
	closed bool
	change chan struct{} // closed by the next change; nil while nobody waits for one
}

// NewRoom returns a Room for so many messages.
func NewRoom(messages int) *Room { return &Room{free: messages} }

// Reserve waits for room for at least so many messages, takes it for at most so many, and returns
// for how many. It returns ctx's error and, after Close, [driver.ErrClosed].
func (r *Room) Reserve(ctx context.Context, least, most int) (int, error) {
	for {
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return 0, driver.ErrClosed
		}
		if r.free >= least {
			n := min(r.free, most)
			r.free -= n
			r.mu.Unlock()
			return n, nil
		}
		if r.change == nil {
			r.change = make(chan struct{})
		}
		change := r.change
		r.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Take takes room for messages that arrived without a reservation.
func (r *Room) Take(messages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free -= messages
}

// Give gives back the room of messages that did not come, or are done.
func (r *Room) Give(messages int) {
	if messages == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += messages
	r.wake()
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
	r.wake()
}

func (r *Room) wake() {
	if r.change != nil {
		close(r.change)
		r.change = nil
	}
}
