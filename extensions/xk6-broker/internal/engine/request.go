package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// requesting is what a flight has more if it is a request.
type requesting struct {
	send   func(ctx context.Context, b driver.Batch, done driver.Done)
	failed atomic.Bool // the failure is counted
}

// answer is what becomes of a request: the reply, or why there is none.
type answer struct {
	reply   driver.Message
	err     error
	refused bool // it was never sent
}

// Request sends one message and waits for the reply. replies is where it comes; nil if the broker has
// requests. The latency runs from the due time, or from the sending in a closed loop.
func (s *Sender) Request(
	ctx context.Context, timeout time.Duration, m driver.Message, at Timing, replies *Replies,
) (driver.Message, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make(chan answer, 2) // the reply, and why the request failed
	sending, stop, send := waiting, func() {}, s.askBroker(answers)
	if replies != nil {
		id := replies.expect(answers)
		defer replies.forget(id)
		if err := correlate(s.pub.driver, &m, replies.text(id), replies.topic); err != nil {
			return driver.Message{}, refused(s.pub.driver, "request", err)
		}
		sending, stop = context.WithCancel(context.WithoutCancel(ctx)) // it may be confirmed after the reply
		send = s.pub.producer.Send
	}
	keep := context.AfterFunc(ctx, stop)
	s.pub.topic.unordered.Store(true) // requests that are under way together have no order
	f := newReceipted(s, driver.Batch{m}, at)
	f.ask = &requesting{send: send}
	f.ends = receiptsTo(func(r []Receipt) {
		if r[0].Err != nil {
			answers <- answer{err: r[0].Err, refused: r[0].Sent == 0}
		}
		stop()
	})
	called := driver.Now()
	f.depart(waiting, sending)
	var a answer
	select {
	case a = <-answers:
	case <-waiting.Done():
		select {
		case a = <-answers: // it has come at the same time
		default:
			a.err = waiting.Err()
		}
	}
	series, now := s.series.Load(), driver.Now()
	if a.err == nil {
		keep()
		series.add(recording.BytesReceived, int64(len(a.reply.Body)))
		series.record(s.shard, f.loop(), recording.RequestLatency, f.dueAt(0), now-f.dueAt(0))
		series.record(s.shard, f.loop(), recording.RequestTime, f.dueAt(0), now-f.sent)
		return a.reply, nil
	}
	if waiting.Err() != nil && !a.refused {
		series.add(recording.Unanswered, 1)
	}
	if !f.ask.failed.Swap(true) {
		series.Fail("request", s.pub.driver.KindOf(a.err))
		due := called
		if !f.closed {
			due = at.Due
		}
		series.record(s.shard, f.loop(), recording.FailedLatency, due, now-due)
	}
	return driver.Message{}, s.pub.driver.Wrap("request", a.err)
}

// askBroker returns a function that sends a request to a broker that has requests.
func (s *Sender) askBroker(answers chan<- answer) func(context.Context, driver.Batch, driver.Done) {
	return func(ctx context.Context, b driver.Batch, done driver.Done) {
		requester, ok := s.pub.producer.(driver.Requester)
		if !ok {
			done(0, errors.ErrUnsupported)
			return
		}
		reply, err := requester.Request(ctx, b[0])
		if err == nil {
			answers <- answer{reply: reply}
		}
		done(0, err)
	}
}
