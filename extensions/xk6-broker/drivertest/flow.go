package drivertest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// window is the kit's number of outstanding messages. No test has more.
const window = 2000

// flow is one topic of a test, with a connection, a consumer of the usual group and a producer.
type flow struct {
	kit   *kit
	conn  driver.Conn
	topic string
	r     *receiver
	p     *sender
}

// flow makes a flow with a topic of one partition.
func (k *kit) flow() *flow { return k.flowAt(k.URL, 1) }

// flowAt makes a flow whose connection leads through a URL. The topic is made directly.
func (k *kit) flowAt(url string, partitions int) *flow {
	c := k.openAt(url)
	admin := c
	if url != k.URL {
		admin = k.open()
	}
	topic := k.topic(admin, partitions)
	return &flow{kit: k, conn: c, topic: topic, r: k.consumer(c, topic), p: k.producer(c, topic)}
}

// settling makes a flow if the driver claims an outcome.
func (k *kit) settling(o driver.Outcome) *flow {
	k.claims(k.f.Settle.Has(o), o.String())
	return k.flow()
}

// consuming makes a flow if the driver has consumers.
func (k *kit) consuming() *flow {
	k.claims(!k.onlySends(), "consumers")
	return k.flow()
}

// lone makes a producer on a connection that leads through a URL. Its topic is made directly.
func (k *kit) lone(url string) *sender { return k.producer(k.openAt(url), k.topic(k.open(), 1)) }

// send sends n messages, which must succeed.
func (f *flow) send(name string, n int) driver.Batch {
	f.kit.Helper()
	b := f.kit.messages(name, n)
	f.p.send(b)
	return b
}

// gone fails the test if a message of the topic comes to the group once more, now or when its
// consumer comes back. A slow broker that confirms no settlement gets as much time again.
func (f *flow) gone() {
	f.kit.Helper()
	f.r.nothing(max(quiet(), min(time.Since(f.r.opened), f.kit.Timeout)))
	f.backlog(f.conn, 0)
	if f.kit.shared() {
		f.kit.close(f.r)
		f.kit.consumer(f.conn, f.topic).nothing(quiet())
	}
}

// backlog waits until the group's backlog is n, if the broker reports one.
func (f *flow) backlog(c driver.Conn, n int64) {
	f.kit.Helper()
	backlogger, ok := c.(driver.Backlogger)
	if !ok || !f.kit.shared() {
		return
	}
	var last driver.Backlog
	var err error
	reached := f.kit.eventually(func() bool {
		last, err = backlogger.Backlog(f.kit.Context(), f.topic, f.kit.usual(f.topic).Group)
		return err != nil || last.Messages == n
	})
	f.kit.must(reached && err == nil, "the backlog stays at %d, want %d: %v", last.Messages, n, err)
}

// messages makes n messages with the bodies name-0000, name-0001, ..., or with numbers that differ
// by name if a body must be a number.
func (k *kit) messages(name string, n int) driver.Batch {
	b := make(driver.Batch, n)
	for i := range b {
		b[i].Body = fmt.Appendf(nil, "%s-%04d", name, i)
		if k.Numbers {
			first := int64(crc32.ChecksumIEEE([]byte(name))) * 10_000
			b[i].Body = strconv.AppendInt(nil, first+int64(i), 10)
		}
	}
	return b
}

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
	s.Producer, err = c.NewProducer(k.Context(), config)
	k.noError("NewProducer", err)
	k.Cleanup(func() {
		k.close(s)
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
		errs := r.wait()
		s.kit.must(len(errs) == 0, "Send: %d of %d messages failed: %v", len(errs), len(r.calls), errs)
	}
}

// try sends b and returns its errors as one.
func (s *sender) try(b driver.Batch) error { return errors.Join(s.hand(b).wait()...) }

// unconfirmed fails the test if a message was confirmed while the server could not answer.
func (s *sender) unconfirmed(r *receipts) {
	s.kit.Helper()
	n := r.confirmed()
	s.kit.check(n == 0 || !s.kit.confirmed(), "%d messages were confirmed while the server could not answer", n)
}

// receipts counts the Done of each message of a batch.
type receipts struct {
	returned chan struct{} // closed when Send has returned
	all      chan struct{} // closed when Done was called as often as there are messages

	mu    sync.Mutex
	calls []int // by message
	count int   // of all calls
	errs  []error
}

func (r *receipts) done(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i >= 0 && i < len(r.calls) {
		r.calls[i]++
	}
	if err != nil {
		r.errs = append(r.errs, err)
	}
	r.count++
	if r.count == len(r.calls) {
		close(r.all)
	}
}

// check fails the test if a Done was not called exactly once. The producer must be closed.
func (r *receipts) check(k *kit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := slices.DeleteFunc(slices.Clone(r.calls), func(n int) bool { return n == 1 })
	k.check(len(wrong) == 0 && r.count == len(r.calls),
		"%d calls of done for the %d messages of one Send; not one call each for %d of them",
		r.count, len(r.calls), len(wrong))
}

// wait waits until Send has returned and each Done was called, and returns the errors.
func (r *receipts) wait() []error {
	<-r.returned
	<-r.all
	_, errs := r.state()
	return errs
}

// state returns the number of calls of Done so far and their errors.
func (r *receipts) state() (calls int, errs []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, slices.Clone(r.errs)
}

// confirmed returns the number of messages with a Done without an error so far.
func (r *receipts) confirmed() int {
	calls, errs := r.state()
	return calls - len(errs)
}
