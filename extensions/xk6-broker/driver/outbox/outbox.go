// Package outbox is the queue of a producer whose requests each take what has come since the last one: what is sent while one is on its way goes with the
// next.
package outbox

import "sync"

// Outbox holds what was sent and has not gone out, in its order. Several goroutines may take from it, where requests may overtake each other.
type Outbox[T any] struct {
	size func(T) int

	mu     sync.Mutex
	some   sync.Cond
	queue  []T
	first  int // of the queue's items that has not been taken
	closed bool
}

// New returns an empty one. Size is what an item counts for the bytes of [Outbox.Next]; nil is nothing.
func New[T any](size func(T) int) *Outbox[T] {
	o := &Outbox[T]{size: size}
	o.some.L = &o.mu
	return o
}

// Put adds n items. It is false, and adds none, after Close.
func (o *Outbox[T]) Put(n int, item func(i int) T) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if o.first > 0 && len(o.queue)+n > cap(o.queue) { // what was taken makes room
		rest := copy(o.queue, o.queue[o.first:])
		clear(o.queue[rest:])
		o.queue, o.first = o.queue[:rest], 0
	}
	for i := range n {
		o.queue = append(o.queue, item(i))
	}
	o.some.Signal()
	return true
}

// Next waits until there is something and gives it, the oldest first: at most so many items, of so many bytes together unless it is one. It gives nothing
// when all has been taken after Close. Spare is what Next gave last: it is cleared and its place used again.
func (o *Outbox[T]) Next(spare []T, most, bytes int) []T {
	clear(spare)
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.first == len(o.queue) {
		if o.closed {
			return nil
		}
		o.some.Wait()
	}
	n := o.within(most, bytes)
	taken := o.queue[o.first : o.first+n]
	all := append(spare[:0], taken...)
	clear(taken)
	if o.first += n; o.first == len(o.queue) {
		o.queue, o.first = o.queue[:0], 0
	} else {
		o.some.Signal() // one Put may fill several requests
	}
	return all
}

// within is how many of the oldest items may go together.
func (o *Outbox[T]) within(most, bytes int) int {
	waiting := o.queue[o.first:]
	most = min(len(waiting), most)
	if o.size == nil {
		return most
	}
	sum := 0
	for n := range most {
		if sum += o.size(waiting[n]); n > 0 && sum > bytes {
			return n
		}
	}
	return most
}

// Close lets nothing more in. What is there can still be taken.
func (o *Outbox[T]) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.some.Broadcast()
}
