//gosec:disable G115 -- counts, not negative and small
package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

var errBatchTooLarge = errors.New("more messages in one send than the producer's window holds")

// flight is some messages on their way: handed over together, each with its own fate.
type flight struct {
	sender *Sender
	batch  driver.Batch
	due    []int64 // of each message; not used where closed
	closed bool    // a closed loop: due is when they are sent
	free   int64   // before which the system kept them waiting: see [Timing]
	behind int64   // how late, by the generator's own fault, the message before them was, if they waited for room behind it, in ns
	sent   int64
	first  uint64 // sequence number of batch[0]
	left   atomic.Int32

	failures atomic.Int32

	receipts []Receipt // where somebody wants to know
	done     driver.Done
	ends     ender

	stamp [StampSize]byte // as it is made
}

// ender is told when the fate of all messages of a flight is known.
type ender interface{ end(f *flight) }

// teller has somebody get the receipts.
type teller func([]Receipt)

func (t teller) end(f *flight) { t(f.receipts) }

// single is a flight of one message, with all that it needs in one piece: what a script sends is mostly that.
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

// newReceipted makes a flight of messages whose receipts somebody wants, with room for their stamps.
func newReceipted(s *Sender, batch driver.Batch) *flight {
	if len(batch) != 1 {
		f := newFlight(s, len(batch))
		f.receipts, f.batch = make([]Receipt, len(batch)), batch
		for i := range batch {
			attachStamp(&batch[i], s.stamp)
		}
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
	return &one.flight
}

func (f *flight) begin(s *Sender) {
	f.sender = s
	// A driver without confirmation calls done as soon as it has the bytes, mostly within Send: one look at the clock
	// serves the whole flight.
	if s.pub.driver.Features.Confirm == driver.Unconfirmed {
		f.done = f.handedOver
	} else {
		f.done = f.confirmed
	}
}

// launch hands the messages over: in a worker where the driver waits for the broker, so that whoever sends is free for what is due
// next. Their places in the window and the worker are taken.
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
	async := s.pub.driver.Features.Async
	s.mu.Lock()
	f.sent = driver.Now()
	f.first = s.track.NextN(n)
	s.course.Sent(f.sent, f.first)
	bytes := f.prepare()
	series := s.series.Load()
	series.add(recording.Due, int64(n))
	series.count(recording.Sent, int64(n), f.sent)
	series.add(recording.BytesSent, bytes)
	series.sent[f.loop()].Store(true)
	if !f.closed {
		var own int64
		for _, due := range f.due {
			own = f.own(due)
			series.record(s.shard, recording.Open, recording.ScheduleLag, due, f.sent-due)
			series.record(s.shard, recording.Open, recording.GeneratorLag, due, own)
		}
		s.pub.own.Store(own)
	}
	if !async { // the driver waits for the broker: order is not to be had, and the next sender need not wait
		s.mu.Unlock()
		s.pub.producer.Send(ctx, f.batch, f.done)
		return
	}
	s.pub.producer.Send(ctx, f.batch, f.done)
	s.mu.Unlock()
}

// roomAt tells that the flight had to wait for room in the window, until now. A window that is full of messages that were late
// themselves would have had room earlier: until the generator has caught up, it is as late as it was with the message before.
func (f *flight) roomAt(now int64) {
	f.free, f.behind = now, f.sender.pub.own.Load()
}

// own is how late a message of the flight is by the generator's own fault.
func (f *flight) own(due int64) int64 {
	return max(f.sent-max(due, f.free), min(f.sent-due, f.behind))
}

// prepare writes the stamps and returns how many bytes of body there are.
func (f *flight) prepare() (bytes int64) {
	s := f.sender
	stamp := Stamp{Run: s.pub.run.ID, Producer: s.id, Closed: f.closed, Due: f.sent, Sent: f.sent}
	for i := range f.batch {
		m := &f.batch[i]
		bytes += int64(len(m.Body))
		if len(m.Properties) > 0 {
			s.pub.topic.disorder(s.pub.run, s.pub.reorders, m.Properties)
		}
		if s.stamp == StampOff {
			continue
		}
		stamp.Sequence = f.first + uint64(i)
		if !f.closed {
			stamp.Due = f.due[i]
		}
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

func (f *flight) dueOf(i int) int64 {
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
		s.expect(series, s.track, f.first+uint64(i), 1)
		series.count(recording.Confirmed, 1, now)
		series.record(s.shard, f.loop(), recording.PublishLatency, f.dueOf(i), now-f.dueOf(i))
		series.record(s.shard, f.loop(), recording.PublishTime, f.dueOf(i), now-f.sent)
	}
	f.receipt(i, now, err)
	f.land(1)
}

// handedOver is the done of a driver whose broker does not answer: it only counts, the last one measures.
func (f *flight) handedOver(i int, err error) {
	if err != nil {
		now := driver.Now()
		f.failed(f.sender.series.Load(), i, now, err)
		f.receipt(i, now, err)
		f.due[i] = failedDue
	}
	if f.left.Add(-1) > 0 {
		return
	}
	now := driver.Now()
	s := f.sender
	series := s.series.Load()
	n := int64(len(f.batch))
	if f.failures.Load() > 0 {
		n = f.expectRest(series)
	} else {
		s.expect(series, s.track, f.first, len(f.batch))
	}
	latency := same{shard: s.shard, trend: recording.PublishLatency}
	took := same{shard: s.shard, trend: recording.PublishTime}
	for j := range f.batch {
		if f.due[j] == failedDue {
			continue
		}
		due := f.dueOf(j)
		at := series.at(due)
		latency.record(at, f.loop(), now-due)
		took.record(at, f.loop(), now-f.sent)
		f.receipt(j, now, nil)
	}
	latency.flush()
	took.flush()
	if n > 0 {
		series.count(recording.Confirmed, n, now)
	}
	s.pub.window.release(int64(len(f.batch)))
	f.ends.end(f)
}

// expectRest expects those messages that did not fail, and counts them.
func (f *flight) expectRest(series *Series) (n int64) {
	for j := range f.batch {
		if f.due[j] != failedDue {
			n++
			f.sender.expect(series, f.sender.track, f.first+uint64(j), 1)
		}
	}
	return n
}

// failedDue marks, in a flight without confirmations, a message whose failure is recorded already.
const failedDue = -1 << 63

func (f *flight) failed(series *Series, i int, now int64, err error) {
	f.failures.Add(1)
	f.sender.pub.topic.failed.Add(1)
	kind := f.sender.pub.driver.KindOf(err)
	series.fail("send", kind)
	if f.sender.stamp != StampOff && f.sender.pub.run.interrupted.Load() && unanswered(kind) {
		f.sender.pub.topic.unanswered.Add(1)
		f.sender.track.Expect(f.first + uint64(i))
	}
	if kind == driver.NotFound {
		f.sender.pub.run.vanished(f.sender.pub.topic)
	}
	series.record(f.sender.shard, f.loop(), recording.FailedLatency, f.dueOf(i), now-f.dueOf(i))
}

// unanswered tells whether the broker may have a message although its send failed.
func unanswered(kind driver.Kind) bool {
	return kind == driver.Timeout || kind == driver.Canceled || kind == driver.Closed || kind == driver.Disconnected
}

func (f *flight) receipt(i int, now int64, err error) {
	if f.receipts == nil {
		return
	}
	f.receipts[i] = Receipt{
		Sequence: f.first + uint64(i), Due: f.dueOf(i), Sent: f.sent, Confirmed: now, Place: f.receipts[i].Place,
		Err: f.sender.pub.driver.Wrap("send", f.sender.pub.topic.explain(err)),
	}
}

// land counts one message as done and ends the flight with its last.
func (f *flight) land(n int32) {
	f.sender.pub.window.release(int64(n))
	if f.left.Add(-n) == 0 {
		f.ends.end(f)
	}
}
