package kafka

import (
	"context"
	"sync"
)

// beginnings has one consumer at a time begin with a topic of a share group that could not be anchored, so that it gets all partitions and
// begins with all of them. Those of this process that come meanwhile wait for it, and go on together.
var beginnings = turns{running: map[[2]string]*turn{}}

type turns struct {
	mu      sync.Mutex
	running map[[2]string]*turn
}

type turn struct {
	over chan struct{}
	ok   bool // the consumer is ready
}

// wait waits until no other consumer begins. Where none has begun meanwhile it is the caller's turn, which it must end.
func (t *turns) wait(ctx context.Context, group, topic string) (end func(ok bool), err error) {
	key := [2]string{group, topic}
	for {
		t.mu.Lock()
		other := t.running[key]
		if other == nil {
			mine := &turn{over: make(chan struct{})}
			t.running[key] = mine
			t.mu.Unlock()
			return func(ok bool) {
				t.mu.Lock()
				defer t.mu.Unlock()
				mine.ok = ok
				delete(t.running, key)
				close(mine.over)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-other.over:
			if other.ok {
				return func(bool) {}, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
