// Package outbox is the queue of a producer that has one request under way: messages sent meanwhile
// go with the next one.
package outbox

import "sync"

// Outbox holds messages in the order of Put until Next takes them. Several goroutines may take, if
// requests may overtake each other.
type Outbox[T any] struct {
	size func(T) int

	mu     sync.Mutex
	some   sync.Cond
	queue  []T
	first  int // of the queue's items that has not been taken
	closed bool
}

// New returns an empty outbox. size returns the bytes of an item for [Outbox.Next]; nil counts
// none.
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

// Next waits for items and returns the oldest: at most so many, and so many bytes unless it is one
// item. After Close it returns nil once all are taken. spare is the slice that Next returned last,
// which is used again.
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

// within returns how many of the oldest items go together.
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

// Close refuses further items. Next still returns the queued ones.
func (o *Outbox[T]) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.some.Broadcast()
}
