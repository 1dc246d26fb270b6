package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// window is what the kit's producers ask for; no test has more messages outstanding.
const window = 2000

// sender is a producer whose every Done is counted.
type sender struct {
	driver.Producer
	k  *kit
	mu sync.Mutex
	// sent are the receipts of all batches, to be checked once the producer is closed and no Done can come any more.
	sent []*receipts
}

// producer makes a producer. When the test ends it is closed, and each Done must have been called exactly once.
func (k *kit) producer(t testing.TB, c driver.Conn, topic string) *sender {
	t.Helper()
	s := &sender{k: k}
	var err error
	k.within(t, "NewProducer", func() {
		s.Producer, err = c.NewProducer(k.context(t), driver.ProducerConfig{
			Topic: topic, Window: window, Options: k.options(t, driver.OnProducer),
		})
	})
	if err != nil {
		t.Fatalf("NewProducer: %v", err)
	}
	t.Cleanup(func() {
		k.close(t, "producer", s)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range s.sent {
			r.check(t)
		}
	})
	return s
}

// Send hands numbers to the producer in place of the bodies, where bodies must be numbers. They are no more as soon as done is called.
func (s *sender) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	if s.k.numbers == nil {
		s.Producer.Send(ctx, b, done)
		return
	}
	encoded := slices.Clone(b)
	for i := range encoded {
		encoded[i].Body = s.k.numbers.number(b[i].Body)
	}
	s.Producer.Send(ctx, encoded, func(i int, err error) {
		if i >= 0 && i < len(encoded) {
			clear(encoded[i].Body)
		}
		done(i, err)
	})
}

// receipts counts the Done of each message of a batch.
type receipts struct {
	mu    sync.Mutex
	calls []int
	errs  []error
	stray []int
	left  int
	all   chan struct{} // closed when each has been called
}

func newReceipts(n int) *receipts {
	return &receipts{calls: make([]int, n), errs: make([]error, n), left: n, all: make(chan struct{})}
}

func (r *receipts) done(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i < 0 || i >= len(r.calls) {
		r.stray = append(r.stray, i)
		return
	}
	if r.calls[i]++; r.calls[i] > 1 {
		return
	}
	r.errs[i] = err
	if r.left--; r.left == 0 {
		close(r.all)
	}
}

// check fails the test where a Done was not called exactly once. It is for the time after Close.
func (r *receipts) check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var never, often int
	for _, n := range r.calls {
		switch {
		case n == 0:
			never++
		case n > 1:
			often++
		}
	}
	if never > 0 || often > 0 || len(r.stray) > 0 {
		t.Errorf("of %d messages sent together, done was never called for %d and more than once for %d; and for none of them as %v",
			len(r.calls), never, often, r.stray)
	}
}

// confirmed counts the Done with no error so far.
func (r *receipts) confirmed() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, calls := range r.calls {
		if calls > 0 && r.errs[i] == nil {
			n++
		}
	}
	return n
}

// called counts the messages whose Done has been called so far.
func (r *receipts) called() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls) - r.left
}

// failed are the errors so far.
func (r *receipts) failed() (errs []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.errs {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// hand calls Send, which must come back, and does not wait for any Done.
func (s *sender) hand(t testing.TB, b driver.Batch) *receipts {
	t.Helper()
	r := s.receipts(len(b))
	ctx := s.k.context(t)
	s.k.within(t, "Send", func() { s.Send(ctx, b, r.done) })
	return r
}

// handing calls Send in the background, for where it may have to wait, and tells when it is back.
func (s *sender) handing(ctx context.Context, b driver.Batch) (r *receipts, back <-chan struct{}) {
	r, returned := s.receipts(len(b)), make(chan struct{})
	go func() { defer close(returned); s.Send(ctx, b, r.done) }()
	return r, returned
}

func (s *sender) receipts(n int) *receipts {
	r := newReceipts(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r)
	return r
}

// try sends b, waits for each Done and returns their errors, those that are not nil.
func (s *sender) try(t testing.TB, b driver.Batch) []error {
	t.Helper()
	r := s.hand(t, b)
	s.wait(t, r)
	return r.failed()
}

// send sends b, and all of it must be confirmed.
func (s *sender) send(t testing.TB, b driver.Batch) {
	t.Helper()
	if errs := s.try(t, b); len(errs) > 0 {
		t.Fatalf("%d of %d messages failed: %v", len(errs), len(b), errs[0])
	}
}

func (s *sender) wait(t testing.TB, r *receipts) {
	t.Helper()
	select {
	case <-r.all:
	case <-s.k.context(t).Done():
		t.Fatalf("done was called for %d of %d messages only", r.called(), len(r.calls))
	}
}

// all reports whether every error is one of the kinds, and there is one.
func (k *kit) all(errs []error, kinds ...driver.Kind) bool {
	for _, err := range errs {
		if !slices.Contains(kinds, k.d.KindOf(err)) {
			return false
		}
	}
	return len(errs) > 0
}

// messages makes n messages whose bodies are name-0000, name-0001, ...
func messages(name string, n int) driver.Batch {
	b := make(driver.Batch, n)
	for i := range b {
		b[i].Body = fmt.Appendf(nil, "%s-%04d", name, i)
	}
	return b
}

// bodies are the bodies of a batch in its order.
func bodies(batches ...driver.Batch) []string {
	var all []string
	for _, b := range batches {
		for _, m := range b {
			all = append(all, string(m.Body))
		}
	}
	return all
}

// same fails the test where the messages got are not exactly those wanted, in any order.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	count := map[string]int{}
	for _, s := range want {
		count[s]--
	}
	for _, s := range got {
		count[s]++
	}
	var lost, more []string
	for s, n := range count {
		switch {
		case n < 0:
			lost = append(lost, s)
		case n > 0:
			more = append(more, s)
		}
	}
	if len(lost)+len(more) > 0 {
		t.Errorf("%s: of %d messages, %d are missing %s and %d came that should not have %s",
			what, len(want), len(lost), some(lost), len(more), some(more))
	}
}

// some shows the first few.
func some(s []string) string {
	slices.Sort(s)
	return fmt.Sprintf("%.60q", s[:min(len(s), 3)])
}

var errNoError = errors.New("no error")

// unsupported fails the test where err is not the refusal that the contract asks for.
func unsupported(t testing.TB, what string, err error) {
	t.Helper()
	if err == nil {
		err = errNoError
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%s is not claimed and should be refused with errors.ErrUnsupported: %v", what, err)
	}
}
