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

// readBuffer is the number of bytes read from the network at once. The client library reads 4 KiB.
const readBuffer = 64 << 10

// sendBuffer is the number of unwritten bytes above which Send and Settle wait.
const sendBuffer = 256 << 10

// socket buffers the network connection of the client library, which writes every frame with a
// system call, under a lock that its closing needs too. Here Write only copies, one goroutine
// writes, and senders wait in ready, with a context. BenchmarkPublish compares both.
type socket struct {
	net.Conn
	reader *bufio.Reader
	frames frames

	mu      sync.Mutex
	wake    *sync.Cond    // the buffer is not empty, or err is set
	room    chan struct{} // closed when the buffer is emptied; nil without a waiting sender
	buffer  []byte
	spare   []byte      // the other buffer, while the first is filled
	err     error       // ended writing
	readErr error       // ended reading
	heard   atomic.Bool // the server has sent something
	stopped chan struct{}
}

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c, reader: bufio.NewReaderSize(c, readBuffer), stopped: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.run()
	return s
}

// run writes the buffer until the socket is closed or fails.
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
			full = nil // one large message must not hold its memory for ever
		}
		s.spare = full
	}
}

// Write copies p.
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

// full reports whether senders must wait. A broken socket is not full: Write returns its error.
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
			return nil //nolint:nilerr // Write returns the error
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

// Read closes the socket when reading fails, also by a missed heartbeat, so that writing ends too.
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

// Close drops the buffer and waits for the goroutine.
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
		_ = s.Conn.Close() // the first error is kept
	}
}

// cause returns the error of reading; nil if the server only hung up.
func (s *socket) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.readErr, io.EOF) || errors.Is(s.readErr, syscall.ECONNRESET) || errors.Is(s.readErr, net.ErrClosed) {
		return nil
	}
	return s.readErr
}
