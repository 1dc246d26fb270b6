package engine

import (
	"context"
	"errors"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// answer is the outcome of a request: the reply, or the reason why there is none.
type answer struct {
	reply   driver.Message
	err     error
	refused bool // it was never sent
}

// Request sends one message and waits for the reply, which arrives at replies; nil if the broker has
// requests. The latency runs from the due time, or from the sending in a closed loop.
func (s *Sender) Request(
	ctx context.Context, timeout time.Duration, m driver.Message, at Timing, replies *Replies,
) (driver.Message, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make(chan answer, 2) // the reply, and the failure of the send
	if replies != nil {
		id := replies.expect(answers)
		defer replies.forget(id)
		if err := correlate(s.pub.driver, &m, replies.text(id), replies.topic); err != nil {
			return driver.Message{}, refused(s.pub.driver, "request", err)
		}
	}
	f := newReceipted(s, driver.Batch{m}, at)
	f.request = true
	f.end = func(f *flight) {
		if err := f.receipts[0].Err; err != nil {
			answers <- answer{err: err, refused: f.sent == 0}
		}
	}
	if replies == nil {
		f.ask = func(m driver.Message) { s.askBroker(waiting, m, answers, f.done) }
	}
	s.pub.topic.unordered.Store(true) // requests that are under way together have no order
	called := driver.Now()
	f.depart(waiting, ctx) // it may be confirmed after the reply
	a := await(waiting, answers)
	if a.err == nil {
		s.answered(f, a.reply)
		return a.reply, nil
	}
	s.unanswered(f, a, called, waiting.Err() != nil)
	return driver.Message{}, s.pub.driver.Wrap("request", a.err)
}

// await returns the first answer, or the error of ctx.
func await(ctx context.Context, answers <-chan answer) answer {
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
	}
	select {
	case a := <-answers: // it arrived at the same time
		return a
	default:
		return answer{err: ctx.Err()}
	}
}

// answered measures a request that was answered.
func (s *Sender) answered(f *flight, reply driver.Message) {
	series, now, due := s.series.Load(), driver.Now(), f.dueAt(0)
	series.add(recording.BytesReceived, int64(len(reply.Body)))
	series.record(s.shard, f.loop(), recording.RequestLatency, due, now-due)
	series.record(s.shard, f.loop(), recording.RequestTime, due, now-f.sent)
}

// unanswered counts a request that failed, since it was called if it is one of a closed loop.
func (s *Sender) unanswered(f *flight, a answer, called int64, late bool) {
	series := s.series.Load()
	if late && !a.refused {
		series.add(recording.Unanswered, 1)
	}
	due := called
	if !f.closed {
		due = f.due[0]
	}
	series.Fail("request", s.pub.driver.KindOf(a.err))
	series.record(s.shard, f.loop(), recording.FailedLatency, due, driver.Now()-due)
}

// askBroker sends a request to a broker that has requests.
func (s *Sender) askBroker(ctx context.Context, m driver.Message, answers chan<- answer, done driver.Done) {
	requester, ok := s.pub.producer.(driver.Requester)
	if !ok {
		done(0, errors.ErrUnsupported)
		return
	}
	reply, err := requester.Request(ctx, m)
	if err == nil {
		answers <- answer{reply: reply}
	}
	done(0, err)
}
