//gosec:disable G115 -- counts, not negative and small
package engine

import (
	"context"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// flight is some messages on their way: handed over together, each with its own fate.
type flight struct {
	sender   *Sender
	batch    driver.Batch
	due      []int64 // of each message; not used if closed
	closed   bool    // a closed loop: due is sent
	free     int64   // see [Timing]
	sent     int64
	first    uint64 // sequence number of batch[0]
	left     atomic.Int32
	failures atomic.Int32
	receipts []Receipt // nil if none are wanted
	done     driver.Done
	ends     ender
	ask      *requesting     // nil if it is no request
	stamp    [StampSize]byte // room to make one
}

// ender is called when the fate of all messages of a flight is known.
type ender interface{ end(f *flight) }

// receiptsTo passes the receipts on.
type receiptsTo func([]Receipt)

func (t receiptsTo) end(f *flight) { t(f.receipts) }

// single is a flight of one message in one allocation, which most sends of scripts are.
type single struct {
	flight
	dues     [1]int64
	outcomes [1]Receipt
	header   [1]driver.Header
	text     [stampTextLen]byte
}

// newFlight makes a flight of up to capacity messages.
func newFlight(s *Sender, capacity int) *flight {
	f := &flight{due: make([]int64, 0, capacity)}
	f.begin(s)
	return f
}

// newReceipted makes a flight of messages that were due at one time and whose receipts are wanted, with
// room for their stamps.
func newReceipted(s *Sender, batch driver.Batch, at Timing) *flight {
	if len(batch) != 1 {
		f := newFlight(s, len(batch))
		f.receipts, f.batch = make([]Receipt, len(batch)), batch
		for i := range batch {
			attachStamp(&batch[i], s.stamp)
		}
		f.plan(at)
		return f
	}
	one := &single{}
	one.due, one.receipts, one.batch = one.dues[:0], one.outcomes[:], batch
	if m := &batch[0]; s.stamp == StampInHeader && len(m.Headers) == 0 {
		one.header[0] = driver.Header{Name: StampHeader, Value: one.text[:]}
		m.Headers = one.header[:]
	} else {
		attachStamp(m, s.stamp)
	}
	one.begin(s)
	one.plan(at)
	return &one.flight
}

// plan sets when the messages were due, and where their places go.
func (f *flight) plan(at Timing) {
	f.free, f.closed = at.Free, at.Due == 0
	for i := range f.batch {
		f.due = append(f.due, at.Due)
		if f.sender.pub.driver.Features.Receipts {
			f.batch[i].Place = &f.receipts[i].Place
		}
	}
}

// depart hands a flight over when there is room for it, or refuses it if waiting ends before.
func (f *flight) depart(waiting, sending context.Context) {
	s, n := f.sender, int64(len(f.batch))
	err := errBatchTooLarge
	if n <= s.pub.window.size {
		var waited bool
		if _, waited, err = s.admit(waiting, n, n); waited {
			f.free = driver.Now()
		}
	}
	if err != nil {
		s.refuse(f, err)
		return
	}
	f.launch(sending)
}

func (f *flight) begin(s *Sender) {
	f.sender = s
	f.done = f.confirmed
	if s.pub.driver.Features.Confirm == driver.Unconfirmed {
		f.done = f.handedOver
	}
}

// launch hands the messages over, in a worker if the driver waits for the broker. Their places in the
// window and the worker are taken.
func (f *flight) launch(ctx context.Context) {
	workers := f.sender.pub.workers
	if workers == nil {
		f.hand(ctx)
		return
	}
	go func() {
		defer workers.release(1)
		f.hand(ctx)
	}()
}

// hand numbers, stamps and hands over the messages.
func (f *flight) hand(ctx context.Context) {
	s := f.sender
	n := len(f.batch)
	f.left.Store(int32(n))
	s.mu.Lock()
	f.sent = driver.Now()
	f.first = s.track.NextN(n)
	s.track.Sent(f.sent, f.first)
	bytes := f.prepare()
	series := s.series.Load()
	series.add(recording.Due, int64(n))
	series.count(recording.Sent, int64(n), f.sent)
	series.add(recording.BytesSent, bytes)
	series.sent[f.loop()].Store(true)
	if !f.closed {
		for _, due := range f.due {
			series.record(s.shard, recording.Open, recording.ScheduleLag, due, f.sent-due)
			series.record(s.shard, recording.Open, recording.GeneratorLag, due, f.sent-max(due, f.free))
		}
	}
	if f.ask != nil {
		s.mu.Unlock()
		f.ask.send(ctx, f.batch, f.done)
		return
	}
	if !s.pub.driver.Features.Async { // there is no order to keep, and the next sender need not wait
		s.mu.Unlock()
		s.pub.producer.Send(ctx, f.batch, f.done)
		return
	}
	s.pub.producer.Send(ctx, f.batch, f.done)
	s.mu.Unlock()
}

// prepare writes the stamps and returns the bytes of the bodies.
func (f *flight) prepare() (bytes int64) {
	s := f.sender
	stamp := Stamp{Run: s.pub.run.ID, Producer: s.track.ID(), Closed: f.closed, Due: f.sent, Sent: f.sent}
	for i := range f.batch {
		m := &f.batch[i]
		bytes += int64(len(m.Body))
		if len(m.Properties) > 0 {
			s.pub.topic.noteOptions(s.pub.effects, m.Properties)
		}
		if s.stamp == StampOff {
			continue
		}
		stamp.Sequence = f.first + uint64(i)
		stamp.Due = f.dueAt(i)
		writeStamp(&stamp, m, s.stamp, &f.stamp)
	}
	return bytes
}

func (f *flight) loop() recording.Loop {
	if f.closed {
		return recording.Closed
	}
	return recording.Open
}

func (f *flight) op() string {
	if f.ask != nil {
		return "request"
	}
	return "send"
}

func (f *flight) dueAt(i int) int64 {
	if f.closed {
		return f.sent
	}
	return f.due[i]
}

// confirmed is the done of a driver whose broker answers.
func (f *flight) confirmed(i int, err error) {
	now := driver.Now()
	s := f.sender
	series := s.series.Load()
	if err != nil {
		f.failed(series, i, now, err)
	} else {
		s.expect(series, f.first+uint64(i), 1)
		series.count(recording.Confirmed, 1, now)
	}
	if err == nil && f.ask == nil {
		due := f.dueAt(i)
		series.record(s.shard, f.loop(), recording.PublishLatency, due, now-due)
		series.record(s.shard, f.loop(), recording.PublishTime, due, now-f.sent)
	}
	f.receipt(i, now, err)
	s.pub.window.release(1)
	if f.left.Add(-1) == 0 {
		f.ends.end(f)
	}
}

// handedOver is the done of a driver whose broker does not answer. The last call measures all
// messages by one look at the clock.
func (f *flight) handedOver(i int, err error) {
	s := f.sender
	series := s.series.Load()
	if err != nil {
		now := driver.Now()
		f.failed(series, i, now, err)
		f.receipt(i, now, err)
		f.due[i] = failedDue
	}
	if f.left.Add(-1) > 0 {
		return
	}
	now := driver.Now()
	n := len(f.batch) - int(f.failures.Load())
	if n == len(f.batch) {
		s.expect(series, f.first, n)
	}
	latency := same{shard: s.shard, trend: recording.PublishLatency}
	took := same{shard: s.shard, trend: recording.PublishTime}
	for j := range f.batch {
		if f.due[j] == failedDue {
			continue
		}
		if n < len(f.batch) {
			s.expect(series, f.first+uint64(j), 1)
		}
		due := f.dueAt(j)
		f.receipt(j, now, nil)
		if f.ask != nil {
			continue
		}
		at := series.at(due)
		latency.record(at, f.loop(), now-due)
		took.record(at, f.loop(), now-f.sent)
	}
	latency.flush()
	took.flush()
	if n > 0 {
		series.count(recording.Confirmed, int64(n), now)
	}
	s.pub.window.release(int64(len(f.batch)))
	f.ends.end(f)
}

// failedDue marks, in a flight without confirmations, a message whose failure is recorded already.
const failedDue = -1 << 63

func (f *flight) failed(series *Series, i int, now int64, err error) {
	s := f.sender
	f.failures.Add(1)
	s.pub.topic.failed.Add(1)
	if f.ask != nil && f.ask.failed.Swap(true) {
		return
	}
	series.Fail(f.op(), s.pub.driver.KindOf(err))
	due := f.dueAt(i)
	series.record(s.shard, f.loop(), recording.FailedLatency, due, now-due)
}

func (f *flight) receipt(i int, now int64, err error) {
	if f.receipts == nil {
		return
	}
	f.receipts[i] = Receipt{
		Sequence: f.first + uint64(i), Due: f.dueAt(i), Sent: f.sent, Confirmed: now, Place: f.receipts[i].Place,
		Err: f.sender.pub.driver.Wrap(f.op(), f.sender.pub.topic.explain(err)),
	}
}
