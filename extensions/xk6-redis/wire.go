package redis

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// exchange is some commands and the handling of their replies.
type exchange interface {
	// encode appends the commands, and returns how many replies they have. It takes no locks.
	encode(b []byte) ([]byte, int)
	// read reads the i-th reply. A [replyError] that it returns, and nil, leave the wire in use.
	read(r reader, i int) error
	// end reports that the i-th reply will not arrive, or the answer of the [barrier] of a message.
	end(i int, err error)
}

// wire is one connection on which commands and replies flow in both directions at once. Waiting
// commands go out together, and nothing waits for more. The library's pipelines wait for all
// replies of a batch, which would be measured as the broker's latency; see BenchmarkStreamPublish.
type wire struct {
	net.Conn
	in       reader
	id       int64         // the server's id of this connection, or -1
	timeout  time.Duration // how long the server may be silent while a reply is due
	barrier  *barrier
	finished chan struct{} // closed when both goroutines have ended

	mu       sync.Mutex
	work     sync.Cond // for the writer: out is not empty, the barrier is passed, or err is set
	out      []byte    // commands that are not with the socket yet
	expected []slot    // whose replies come next; the reader takes them all at once
	due      int       // replies that have not been read
	since    int64     // when due last became more than 0
	closing  bool
	drained  chan struct{} // closed when closing and nothing is due
	err      error         // why the wire is of no use any more

	heard int64 // when the server was last heard; the reader's
}

// slot is the place of one reply in the stream.
type slot struct {
	exchange
	i int
}

// newWire begins to use a connection, which must be ready for commands.
func newWire(c net.Conn, in reader, timeout time.Duration, b *barrier) *wire {
	w := &wire{
		Conn: c, in: in, timeout: timeout, barrier: b, id: -1,
		finished: make(chan struct{}), drained: make(chan struct{}),
	}
	w.in.Reset(w) // in has no bytes buffered; from here on each Read sets the deadline
	w.work.L = &w.mu
	var running sync.WaitGroup
	running.Go(w.write)
	running.Go(w.receive)
	go func() { running.Wait(); close(w.finished) }()
	return w
}

// put queues commands. After an error nothing is queued and x is not called.
func (w *wire) put(x exchange) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.closing {
		return driver.ErrClosed
	}
	w.append(x)
	w.work.Signal()
	return nil
}

func (w *wire) append(x exchange) {
	var n int
	w.out, n = x.encode(w.out)
	for i := range n {
		w.expected = append(w.expected, slot{x, i})
	}
	if w.due == 0 {
		w.since = driver.Now()
	}
	w.due += n
}

// write is the writing goroutine.
func (w *wire) write() {
	const keep = 1 << 20 // a buffer that one burst has made larger than this is let go
	var spare []byte
	for {
		w.mu.Lock()
		for w.err == nil && (len(w.out) == 0 || w.barrier.raised()) {
			w.work.Wait()
		}
		if w.err != nil {
			w.mu.Unlock()
			return
		}
		if w.barrier != nil {
			w.barrier.up.Store(true)
			w.append(w.barrier)
		}
		b := w.out
		w.out = spare[:0]
		w.mu.Unlock()
		if _, err := w.Conn.Write(b); err != nil {
			w.abort(err)
			return
		}
		if spare = b; cap(spare) > keep {
			spare = nil
		}
	}
}

// receive is the reading goroutine.
func (w *wire) receive() {
	var taken []slot
	next, read := 0, 0
	for {
		if w.in.Buffered() == 0 || next == len(taken) {
			w.count(read)
			read = 0
		}
		err := w.await()
		if err == nil && next == len(taken) {
			w.mu.Lock()
			clear(taken)
			taken, w.expected, next = w.expected, taken[:0], 0
			w.mu.Unlock()
			if len(taken) == 0 {
				err = errProtocol
			}
		}
		if err == nil {
			s := taken[next]
			if err = s.read(w.in, s.i); err == nil || answered(err) {
				next++
				read++
				if err != nil && elsewhere(err) {
					w.abort(err)
				}
				continue
			}
		}
		w.abort(err)
		w.mu.Lock()
		err = w.err // the first reason
		rest := append(taken[next:], w.expected...)
		w.expected = nil
		w.mu.Unlock()
		w.barrier.release(err)
		for _, s := range rest {
			s.end(s.i, err)
		}
		return
	}
}

// count counts replies that have been read.
func (w *wire) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due -= n
	if w.barrier != nil {
		w.work.Signal()
	}
	if w.due == 0 && w.closing {
		w.markDrained()
	}
}

func (w *wire) markDrained() {
	select {
	case <-w.drained:
	default:
		close(w.drained)
	}
}

// await returns when there is data to read. The wait is unlimited while no reply is due.
func (w *wire) await() error {
	for w.in.Buffered() == 0 {
		_, err := w.in.Peek(1)
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || w.silence() >= w.timeout) {
			return err
		}
	}
	return nil
}

// silence is for how long the server has been silent while a reply was due.
func (w *wire) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due == 0 {
		return 0
	}
	return time.Duration(driver.Now() - max(w.heard, w.since))
}

// Read reads from the socket with the deadline of silence. Data that arrived is always read.
func (w *wire) Read(b []byte) (int, error) {
	const least = 50 * time.Millisecond
	if err := w.SetReadDeadline(time.Now().Add(max(w.timeout-w.silence(), least))); err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(b)
	if n > 0 {
		w.heard = driver.Now()
	}
	return n, err
}

// abort breaks the wire; outstanding replies fail with err.
func (w *wire) abort(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.err = err
	_ = w.Conn.Close()
	w.work.Broadcast()
}

// broken reports whether the wire is of no use any more.
func (w *wire) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// close waits until nothing is due, or ctx ends, and then for the wire's goroutines.
func (w *wire) close(ctx context.Context) error {
	w.mu.Lock()
	w.closing = true
	if w.due == 0 {
		w.markDrained()
	}
	w.mu.Unlock()
	var err error
	select {
	case <-w.drained:
		w.abort(driver.ErrClosed)
	case <-w.finished:
	case <-ctx.Done():
		err = ctx.Err()
		w.abort(err)
	}
	<-w.finished
	return err
}

func newReader(c net.Conn) reader { return reader{bufio.NewReaderSize(c, 64<<10)} }
