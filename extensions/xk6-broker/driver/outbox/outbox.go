// Package outbox is the queue of a producer that makes one request after the other, which keeps the order: what is sent while one is on its way goes with
// the next.
package outbox

import "sync"

// Outbox holds what was sent and has not gone out. One goroutine takes from it.
type Outbox[T any] struct {
	size func(T) int
	wake chan struct{} // holds one token while there may be something to take

	mu     sync.Mutex
	queue  []T
	closed bool
}

// New returns an empty one. Size is what an item counts for the bytes of [Outbox.Next].
func New[T any](size func(T) int) *Outbox[T] {
	return &Outbox[T]{size: size, wake: make(chan struct{}, 1)}
}

// Put adds n items. It is false, and adds none, after Close.
func (o *Outbox[T]) Put(n int, item func(i int) T) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	for i := range n {
		o.queue = append(o.queue, item(i))
	}
	o.signal()
	return true
}

func (o *Outbox[T]) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Next waits until there is something and gives it, the oldest first: at most so many items, of so many bytes together unless it is one. It gives nothing
// when all has been taken after Close. Spare is what Next gave last: it is cleared and its place used again.
func (o *Outbox[T]) Next(spare []T, most, bytes int) []T {
	clear(spare)
	for {
		all, closed := o.take(spare[:0], most, bytes)
		if len(all) > 0 || closed {
			return all
		}
		<-o.wake
	}
}

func (o *Outbox[T]) take(into []T, most, bytes int) (all []T, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.within(most, bytes)
	if n == 0 {
		return nil, o.closed
	}
	if n == len(o.queue) {
		all, o.queue = o.queue, into
		return all, false
	}
	all = append(into, o.queue[:n]...)
	rest := copy(o.queue, o.queue[n:])
	clear(o.queue[rest:])
	o.queue = o.queue[:rest]
	return all, false
}

// within is how many of the oldest items may go together.
func (o *Outbox[T]) within(most, bytes int) int {
	sum := 0
	for n := range min(len(o.queue), most) {
		if sum += o.size(o.queue[n]); n > 0 && sum > bytes {
			return n
		}
	}
	return min(len(o.queue), most)
}

// Close lets nothing more in. What is there can still be taken.
func (o *Outbox[T]) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.signal()
}
