package inbox

import (
	"context"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Room is how many more messages may be with a consumer: its prefetch, less those that are on their way to it, wait in it, or are received and
// not settled. It may be used by any number of goroutines.
type Room struct {
	mu     sync.Mutex
	free   int
	closed bool
	change chan struct{} // closed by the next change; nil while nobody waits for one
}

// NewRoom is for so many messages.
func NewRoom(messages int) *Room { return &Room{free: messages} }

// Reserve waits until at least so many messages have room, takes that of most of them at most, and tells how many. Its errors are ctx's and
// after Close [driver.ErrClosed].
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

// Take is for messages that come whether there is room for them or not.
func (r *Room) Take(messages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free -= messages
}

// Give is for messages that came not, or went.
func (r *Room) Give(messages int) {
	if messages == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += messages
	r.wake()
}

// Free is how many messages have room; less than 0 where more came than have.
func (r *Room) Free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.free
}

// Close ends the waiting.
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
