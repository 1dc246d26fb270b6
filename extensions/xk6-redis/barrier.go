package redis

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// barrier asks, after each pipeline, whether replicas and disks have it. The next pipeline waits
// for the answer: one wait for each pipeline, not for each message.
type barrier struct {
	replicas int64 // how many must have it
	fsync    bool  // the server's own append-only file must have it on disk
	timeout  time.Duration

	up      atomic.Bool // a pipeline has been sent and its answer has not been read
	waiting []slot      // what the server accepted of it; the reader's, like what follows
	err     error
}

// again returns a barrier for a new connection that asks for the same, and not for less.
func (b *barrier) again() *barrier {
	return &barrier{replicas: b.replicas, fsync: b.fsync, timeout: b.timeout}
}

// raised reports whether a writer must wait.
func (b *barrier) raised() bool { return b != nil && b.up.Load() }

// hold keeps an accepted message until the barrier's answer.
func (b *barrier) hold(x exchange, i int) { b.waiting = append(b.waiting, slot{x, i}) }

func (b *barrier) encode(out []byte) ([]byte, int) {
	n, ms := 0, strconv.FormatInt(b.timeout.Milliseconds(), 10)
	if b.replicas > 0 {
		out = appendCommand(out, "WAIT", strconv.FormatInt(b.replicas, 10), ms)
		n++
	}
	if b.fsync {
		out = appendCommand(out, "WAITAOF", "1", "0", ms)
		n++
	}
	return out, n
}

func (b *barrier) read(r reader, i int) error {
	err := b.answer(r, i)
	if err != nil && !answered(err) && !errors.As(err, new(unprovenError)) {
		return err
	}
	if b.err == nil {
		b.err = err
	}
	if more := b.fsync && b.replicas > 0 && i == 0; !more {
		b.release(b.err)
		b.err = nil
		b.up.Store(false)
	}
	return nil
}

// answer reads the numbers of replicas (WAIT), or of this server and replicas (WAITAOF).
func (b *barrier) answer(r reader, i int) error {
	if b.replicas > 0 && i == 0 {
		got, err := r.integer()
		if err == nil && got < b.replicas {
			err = unprovenError{got, b.replicas}
		}
		return err
	}
	if err := r.arrayOf(2); err != nil {
		return err
	}
	local, err := r.integer()
	if err != nil {
		return err
	}
	if _, err = r.integer(); err == nil && local < 1 {
		err = unprovenError{}
	}
	return err
}

func (b *barrier) end(_ int, err error) { b.release(err) }

// release reports the held messages.
func (b *barrier) release(err error) {
	if b == nil {
		return
	}
	for _, s := range b.waiting {
		s.end(s.i, err)
	}
	clear(b.waiting)
	b.waiting = b.waiting[:0]
}

// unprovenError reports a message that the server has without the requested proof in time.
type unprovenError struct{ got, want int64 }

func (e unprovenError) Error() string {
	if e.want == 0 {
		return "accepted, but not known to be on disk within waitTimeout"
	}
	return fmt.Sprintf("accepted, but %d of %d replicas confirmed it within waitTimeout", e.got, e.want)
}
