package amqp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// readBuffer is how many bytes are asked of the network at once. The client library asks for 4 KiB.
const readBuffer = 64 << 10

// sendBuffer is how many bytes may wait above the kernel's own socket buffer before Send and Settle wait.
const sendBuffer = 256 << 10

// socket is the network connection under the client library. The library writes and flushes every frame with a system
// call of its own, under a lock that its teardown needs too, so that a server which stops reading would hang publishers,
// heartbeats and Close together. Here a write only copies, one goroutine passes on whatever has come together by the
// time it gets to run, and who has much to send waits in ready, where a context can end the waiting. What that brings is the loop "driver"
// of BenchmarkPublish beside "raw", the library by itself: about as fast or faster, for about half of the CPU time.
type socket struct {
	net.Conn
	reader *bufio.Reader
	frames frames

	mu      sync.Mutex
	wake    *sync.Cond    // there is something to pass on, or err is set
	room    chan struct{} // closed when the buffer has been emptied; nil while nobody waits for that
	buffer  []byte
	spare   []byte      // the other buffer, while the first is filled
	err     error       // why nothing can be written any more
	readErr error       // why reading ended
	heard   atomic.Bool // the other side has said anything
	stopped chan struct{}
}

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c, reader: bufio.NewReaderSize(c, readBuffer), stopped: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.run()
	return s
}

// run passes on what was written until the socket is closed or fails.
func (s *socket) run() {
	defer close(s.stopped)
	for {
		s.mu.Lock()
		for len(s.buffer) == 0 && s.err == nil {
			s.wake.Wait()
		}
		if s.err != nil {
			s.mu.Unlock()
			return
		}
		full := s.buffer
		s.buffer = s.spare[:0]
		s.spare = nil
		if s.room != nil {
			close(s.room)
			s.room = nil
		}
		s.mu.Unlock()
		if _, err := s.Conn.Write(full); err != nil {
			s.fail(err)
			return
		}
		if cap(full) > 4*sendBuffer {
			full = nil // one large message shall not hold its memory for ever
		}
		s.spare = full
	}
}

// Write takes p at once.
func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if len(s.buffer) == 0 {
		s.wake.Signal()
	}
	s.buffer = append(s.buffer, p...)
	return len(p), nil
}

// full reports whether who wants to send should wait first. A broken socket is not: the write will tell.
func (s *socket) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buffer) >= sendBuffer && s.err == nil
}

// ready waits until there is room to send, or ctx ends.
func (s *socket) ready(ctx context.Context) error {
	for {
		s.mu.Lock()
		if len(s.buffer) < sendBuffer || s.err != nil {
			s.mu.Unlock()
			return nil //nolint:nilerr // a broken socket has room: whoever writes is told
		}
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Read closes the socket when reading fails, a missed heartbeat included, so that nobody waits for it to write either.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	if n > 0 && !s.heard.Load() {
		s.heard.Store(true)
	}
	s.frames.read(p[:n])
	if err != nil {
		s.mu.Lock()
		if s.readErr == nil {
			s.readErr = err
		}
		s.mu.Unlock()
		s.fail(err)
	}
	return n, err
}

// Close gives up what has not been passed on yet and waits for the goroutine.
func (s *socket) Close() error {
	s.fail(net.ErrClosed)
	<-s.stopped
	return nil
}

func (s *socket) fail(err error) {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
	}
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
	s.wake.Signal()
	s.mu.Unlock()
	if first {
		_ = s.Conn.Close() // the reason is kept; that of closing tells nothing more
	}
}

// cause is why reading ended, where that says more than that the other side went away.
func (s *socket) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.readErr, io.EOF) || errors.Is(s.readErr, syscall.ECONNRESET) || errors.Is(s.readErr, net.ErrClosed) {
		return nil
	}
	return s.readErr
}
