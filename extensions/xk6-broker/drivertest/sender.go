package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// window is the kit's number of outstanding messages. No test has more.
const window = 2000

// sender is a producer that counts every Done.
type sender struct {
	driver.Producer
	kit  *kit
	mu   sync.Mutex
	sent []*receipts
}

// producer makes a producer. It is closed when the test ends, and each Done must have been called
// exactly once.
func (k *kit) producer(c driver.Conn, topic string) *sender {
	s := &sender{kit: k}
	config := driver.ProducerConfig{Topic: topic, Window: window, Options: k.options(driver.OnProducer)}
	var err error
	if s.Producer, err = c.NewProducer(k.Context(), config); err != nil {
		k.Fatalf("NewProducer: %v", err)
	}
	k.Cleanup(func() {
		k.close(s)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range s.sent {
			r.check(k)
		}
	})
	return s
}

// start calls Send in the background.
func (s *sender) start(ctx context.Context, b driver.Batch) *receipts {
	r := &receipts{calls: make([]int, len(b)), returned: make(chan struct{}), all: make(chan struct{})}
	s.mu.Lock()
	s.sent = append(s.sent, r)
	s.mu.Unlock()
	go func() {
		defer close(r.returned)
		s.Send(ctx, b, r.done)
	}()
	return r
}

// hand calls Send and waits for no Done.
func (s *sender) hand(b driver.Batch) *receipts {
	r := s.start(s.kit.Context(), b)
	<-r.returned
	return r
}

// various calls Send with batches of several sizes and waits for no Done in between, as a load
// test does.
func (s *sender) various(b driver.Batch) {
	for size := 1; len(b) > 0; size = size%13 + 1 {
		n := min(size, len(b))
		s.hand(b[:n])
		b = b[n:]
	}
}

// send sends b, which must succeed.
func (s *sender) send(b driver.Batch) {
	s.kit.Helper()
	s.succeed(s.hand(b))
}

// succeed waits for batches, which must succeed.
func (s *sender) succeed(batches ...*receipts) {
	s.kit.Helper()
	for _, r := range batches {
		if errs := r.wait(); len(errs) > 0 {
			s.kit.Fatalf("Send: %d of %d messages failed: %v", len(errs), len(r.calls), errs[0])
		}
	}
}

// try sends b and returns its errors as one.
func (s *sender) try(b driver.Batch) error { return errors.Join(s.hand(b).wait()...) }

// unconfirmed fails the test if a message was confirmed while the server could not answer.
func (s *sender) unconfirmed(r *receipts) {
	s.kit.Helper()
	if n := r.confirmed(); n > 0 && s.kit.confirmed() {
		s.kit.Errorf("%d of %d messages were confirmed while the server could not answer", n, len(r.calls))
	}
}

// receipts counts the Done of each message of a batch.
type receipts struct {
	returned chan struct{} // closed when Send has returned
	all      chan struct{} // closed when Done of each message was called

	mu    sync.Mutex
	calls []int // by message
	stray int   // calls for messages that are not in the batch
	first int   // messages with a call
	errs  []error
}

func (r *receipts) done(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i < 0 || i >= len(r.calls) {
		r.stray++
		return
	}
	r.calls[i]++
	if r.calls[i] > 1 {
		return
	}
	r.first++
	if err != nil {
		r.errs = append(r.errs, err)
	}
	if r.first == len(r.calls) {
		close(r.all)
	}
}

// check fails the test if a Done was not called exactly once. The producer must be closed.
func (r *receipts) check(k *kit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	repeated := slices.DeleteFunc(slices.Clone(r.calls), func(n int) bool { return n < 2 })
	if never := len(r.calls) - r.first; never+len(repeated)+r.stray > 0 {
		k.Errorf("of %d messages of one Send, done was never called for %d and more than once for %d; strays: %d",
			len(r.calls), never, len(repeated), r.stray)
	}
}

// wait waits until Send has returned and each Done was called, and returns the errors.
func (r *receipts) wait() []error {
	<-r.returned
	<-r.all
	_, errs := r.state()
	return errs
}

// state returns the number of messages whose Done was called so far, and their errors.
func (r *receipts) state() (called int, errs []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first, slices.Clone(r.errs)
}

// confirmed returns the number of messages with a Done without an error so far.
func (r *receipts) confirmed() int {
	called, errs := r.state()
	return called - len(errs)
}
