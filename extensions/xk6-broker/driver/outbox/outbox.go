// Package outbox is the queue of a producer that has one request under way: messages sent meanwhile
// go with the next one.
package outbox

import (
	"slices"
	"sync"
)

// Outbox holds messages in the order of Put until Next takes them. Several goroutines may take, if
// requests may overtake each other.
type Outbox[T any] struct {
	size func(T) int

	mu     sync.Mutex
	some   sync.Cond
	queue  []T
	closed bool
}

// New returns an empty outbox. size returns the bytes of an item for [Outbox.Next]; nil counts none.
func New[T any](size func(T) int) *Outbox[T] {
	o := &Outbox[T]{size: size}
	o.some.L = &o.mu
	return o
}

// Put adds n items. After Close it adds none and returns false.
func (o *Outbox[T]) Put(n int, item func(i int) T) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	for i := range n {
		o.queue = append(o.queue, item(i))
	}
	o.some.Signal()
	return true
}

// Next waits for items and returns the oldest: at most so many, and so many bytes unless it is one
// item. After Close it returns nil once all are taken. spare is the slice that Next returned last,
// which is used again.
func (o *Outbox[T]) Next(spare []T, most, bytes int) []T {
	clear(spare)
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 {
		if o.closed {
			return nil
		}
		o.some.Wait()
	}
	n := o.within(most, bytes)
	all := append(spare[:0], o.queue[:n]...)
	o.queue = slices.Delete(o.queue, 0, n)
	if len(o.queue) > 0 {
		o.some.Signal() // one Put may fill several requests
	}
	return all
}

// within returns the number of the oldest items that go together.
func (o *Outbox[T]) within(most, bytes int) int {
	most = min(len(o.queue), most)
	if o.size == nil {
		return most
	}
	sum := 0
	for n := range most {
		if sum += o.size(o.queue[n]); n > 0 && sum > bytes {
			return n
		}
	}
	return most
}

// Close refuses further items. Next returns the queued ones.
func (o *Outbox[T]) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.some.Broadcast()
}
