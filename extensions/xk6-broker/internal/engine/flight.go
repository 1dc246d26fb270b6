//gosec:disable G115 -- counts, not negative and small
package engine

import (
	"context"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// flight is a batch of messages on their way. They are handed over together; each has its own fate.
type flight struct {
	sender   *Sender
	batch    driver.Batch
	op       string // "send" or "request"
	loop     recording.Loop
	due      []int64 // of each message; not used in a closed loop, where due is sent
	free     int64   // see [Timing]
	sent     int64   // 0 before the hand-over
	first    uint64  // sequence number of batch[0]
	left     atomic.Int32
	failures atomic.Int32
	receipts []Receipt // nil if not wanted
	done     driver.Done
	end      func(*flight)        // is called when the fate of all messages is decided
	ask      func(driver.Message) // sends the message as a request instead of the producer; may be nil
	stamp    [StampSize]byte      // room to make one
}

// newFlight makes a flight of up to capacity messages.
func newFlight(s *Sender, capacity int) *flight {
	f := &flight{sender: s, op: "send", due: make([]int64, 0, capacity)}
	f.done = f.confirmed
	if s.pub.driver.Features.Confirm == driver.Unconfirmed {
		f.done = f.handedOver
	}
	return f
}

// newReceipted makes a flight of messages that were due at one time, with receipts and room for
// stamps.
func newReceipted(s *Sender, batch driver.Batch, at Timing) *flight {
	f := newFlight(s, len(batch))
	f.batch = batch
	f.receipts = make([]Receipt, len(batch))
	f.free = at.Free
	if at.Due == 0 {
		f.loop = recording.Closed
	}
	for i := range batch {
		f.due = append(f.due, at.Due)
		attachStamp(&batch[i], s.stamp)
		if s.pub.driver.Features.Receipts {
			batch[i].Place = &f.receipts[i].Place
		}
	}
	return f
}

// depart hands a flight over when there is room for it, or refuses it if waiting ends before.
func (f *flight) depart(waiting, sending context.Context) {
	s, n := f.sender, int64(len(f.batch))
	if n > s.pub.window.size {
		s.refuse(f, errBatchTooLarge)
		return
	}
	_, waited, err := s.admit(waiting, n, n)
	if err != nil {
		s.refuse(f, err)
		return
	}
	if waited {
		f.free = driver.Now()
	}
	f.launch(sending)
}

// launch hands the messages over, in a worker if the driver waits for the broker. Their places in
// the window and the worker are taken.
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
	s, n := f.sender, len(f.batch)
	f.left.Store(int32(n))
	s.mu.Lock()
	f.sent = driver.Now()
	f.first = s.track.NextN(n)
	s.track.Sent(f.sent, f.first)
	bytes := f.prepare()
	series := s.series.Load()
	if f.loop == recording.Open {
		for _, due := range f.due {
			series.record(s.shard, recording.Open, recording.ScheduleLag, due, max(0, f.sent-due))
			series.record(s.shard, recording.Open, recording.GeneratorLag, due, f.sent-max(due, f.free))
		}
	}
	series.add(recording.Due, int64(n))
	series.count(recording.Sent, int64(n), f.sent)
	series.add(recording.BytesSent, bytes)
	switch {
	case f.ask != nil:
		s.mu.Unlock()
		f.ask(f.batch[0])
	case s.pub.driver.Features.Async:
		s.pub.producer.Send(ctx, f.batch, f.done)
		s.mu.Unlock()
	default: // there is no order to keep, and the next sender need not wait
		s.mu.Unlock()
		s.pub.producer.Send(ctx, f.batch, f.done)
	}
}

// prepare writes the stamps and returns the bytes of the bodies.
func (f *flight) prepare() (bytes int64) {
	s := f.sender
	stamp := Stamp{Run: s.pub.run.ID, Producer: s.track.ID(), Closed: f.loop == recording.Closed, Sent: f.sent}
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

func (f *flight) dueAt(i int) int64 {
	if f.loop == recording.Closed {
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
	if err == nil && f.op == "send" {
		due := f.dueAt(i)
		series.record(s.shard, f.loop, recording.PublishLatency, due, now-due)
		series.record(s.shard, f.loop, recording.PublishTime, due, now-f.sent)
	}
	f.receipt(i, now, err)
	s.pub.window.release(1)
	if f.left.Add(-1) == 0 {
		f.end(f)
	}
}

// failedDue marks, in a flight without confirmations, a message whose failure is recorded already.
const failedDue = -1 << 63

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
	f.measureHandedOver(series, now)
	if n := len(f.batch) - int(f.failures.Load()); n > 0 {
		series.count(recording.Confirmed, int64(n), now)
	}
	s.pub.window.release(int64(len(f.batch)))
	f.end(f)
}

// measureHandedOver measures the messages that did not fail, and makes the groups expect them.
func (f *flight) measureHandedOver(series *Series, now int64) {
	s := f.sender
	together := f.failures.Load() == 0
	if together {
		s.expect(series, f.first, len(f.batch))
	}
	latency := same{shard: s.shard, trend: recording.PublishLatency}
	took := same{shard: s.shard, trend: recording.PublishTime}
	for i := range f.batch {
		if f.due[i] == failedDue {
			continue
		}
		if !together {
			s.expect(series, f.first+uint64(i), 1)
		}
		f.receipt(i, now, nil)
		if f.op == "send" {
			due := f.dueAt(i)
			latency.record(series.at(due), f.loop, now-due)
			took.record(series.at(due), f.loop, now-f.sent)
		}
	}
	latency.flush()
	took.flush()
}

// failed counts a failed send. [Sender.Request] counts that of a request.
func (f *flight) failed(series *Series, i int, now int64, err error) {
	f.failures.Add(1)
	f.sender.pub.topic.failed.Add(1)
	if f.op == "send" {
		due := f.dueAt(i)
		series.Fail("send", f.sender.pub.driver.KindOf(err))
		series.record(f.sender.shard, f.loop, recording.FailedLatency, due, now-due)
	}
}

func (f *flight) receipt(i int, now int64, err error) {
	if f.receipts == nil {
		return
	}
	f.receipts[i] = Receipt{
		Sequence: f.first + uint64(i), Due: f.dueAt(i), Sent: f.sent, Confirmed: now, Place: f.receipts[i].Place,
		Err: f.sender.wrap(f.op, err),
	}
}
