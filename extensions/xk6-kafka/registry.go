package kafka

import (
	"context"
	"sync"
)

// flusher is an open consumer whose buffered settlements can be sent.
type flusher interface {
	flush(ctx context.Context) error
}

// registry holds the open consumers of a connection by topic and group.
type registry struct {
	mu   sync.Mutex
	open map[flusher][2]string
}

func (r *registry) add(f flusher, topic, group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[flusher][2]string{}
	}
	r.open[f] = [2]string{topic, group}
}

func (r *registry) remove(f flusher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, f)
}

// flush sends what the consumers of a group have settled and the client still buffers.
func (r *registry) flush(ctx context.Context, topic, group string) error {
	r.mu.Lock()
	var all []flusher
	for f, key := range r.open {
		if key == [2]string{topic, group} {
			all = append(all, f)
		}
	}
	r.mu.Unlock()
	for _, f := range all {
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// failure keeps the last error until it is taken.
type failure struct {
	mu  sync.Mutex
	err error
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failure) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err
	f.err = nil
	return err
}
