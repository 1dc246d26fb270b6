package engine

import (
	"context"
	"errors"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// request is one on its way.
type request struct {
	sender    *Sender
	series    *Series
	sequence  uint64
	due, sent int64
	loop      recording.Loop
}

// Request sends one message and waits for the reply. replies is where it comes; nil if the broker has
// requests. The latency runs from the due time, or from the sending in a closed loop.
func (s *Sender) Request(
	ctx context.Context, timeout time.Duration, m driver.Message, at Timing, replies *Replies,
) (driver.Message, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s.pub.topic.unordered.Store(true) // requests that are under way together have no order
	r := &request{sender: s, series: s.series.Load()}
	if replies == nil {
		return r.byBroker(waiting, &m, at)
	}
	return r.byTopics(ctx, waiting, &m, at, replies)
}

// byBroker sends a request to a broker that has requests.
func (r *request) byBroker(ctx context.Context, m *driver.Message, at Timing) (driver.Message, error) {
	s := r.sender
	requester, ok := s.pub.producer.(driver.Requester)
	if !ok {
		return driver.Message{}, s.pub.driver.Wrap("request", errors.ErrUnsupported)
	}
	attachStamp(m, s.stamp)
	r.begin(m, at)
	reply, err := requester.Request(ctx, *m)
	now := driver.Now()
	if err != nil {
		s.pub.topic.failed.Add(1)
		return driver.Message{}, r.failed(ctx, now, err)
	}
	r.confirmed()
	r.answered(now, &reply)
	return reply, nil
}

// byTopics sends a request to one topic and waits for the reply from another.
func (r *request) byTopics(
	ctx, waiting context.Context, m *driver.Message, at Timing, replies *Replies,
) (driver.Message, error) {
	s := r.sender
	id, answers := replies.expect()
	defer replies.forget(id)
	if err := correlate(s.pub.driver, m, replies.text(id), replies.topic); err != nil {
		return driver.Message{}, refused(s.pub.driver, "request", err)
	}
	attachStamp(m, s.stamp)
	_, waited, err := s.admit(waiting, 1, 1)
	if waited {
		at.Free = driver.Now()
	}
	if err != nil {
		now := driver.Now()
		if r.due = at.Due; r.due == 0 {
			r.due, r.loop = now, recording.Closed
		} else {
			r.series.add(recording.Due, 1)
		}
		return driver.Message{}, r.failed(context.Background(), now, err)
	}
	r.begin(m, at)
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	keep := context.AfterFunc(ctx, cancel)
	r.send(sending, *m, func(err error) {
		cancel()
		if err != nil {
			answers <- answer{err: err} // it has room for it
		}
	})
	var a answer
	select {
	case a = <-answers:
	case <-waiting.Done():
		a.err = waiting.Err()
	}
	now := driver.Now()
	if a.err != nil {
		return driver.Message{}, r.failed(waiting, now, a.err)
	}
	keep() // the confirmation of an answered request may come later
	r.answered(now, &a.reply)
	return a.reply, nil
}

// begin numbers and stamps a request, which is handed over next.
func (r *request) begin(m *driver.Message, at Timing) {
	s := r.sender
	s.mu.Lock()
	r.sent, r.due = driver.Now(), at.Due
	r.sequence = s.track.Next()
	s.track.Sent(r.sent, r.sequence)
	s.mu.Unlock()
	if r.due == 0 {
		r.due, r.loop = r.sent, recording.Closed
	} else {
		r.series.record(s.shard, recording.Open, recording.ScheduleLag, r.due, r.sent-r.due)
		r.series.record(s.shard, recording.Open, recording.GeneratorLag, r.due, r.sent-max(r.due, at.Free))
	}
	r.series.sent[r.loop].Store(true)
	r.series.add(recording.Due, 1)
	r.series.count(recording.Sent, 1, r.sent)
	r.series.add(recording.BytesSent, int64(len(m.Body)))
	if s.stamp != StampOff {
		stamp := Stamp{
			Run: s.pub.run.ID, Producer: s.track.ID(), Sequence: r.sequence,
			Closed: r.loop == recording.Closed, Due: r.due, Sent: r.sent,
		}
		writeStamp(&stamp, m, s.stamp, new([StampSize]byte))
	}
}

// send hands the request over, and calls done when its fate is known.
func (r *request) send(ctx context.Context, m driver.Message, done func(error)) {
	s := r.sender
	hand := func() {
		s.pub.producer.Send(ctx, driver.Batch{m}, func(_ int, err error) {
			if err == nil {
				r.confirmed()
			} else {
				s.pub.topic.failed.Add(1)
			}
			s.pub.window.release(1)
			done(err)
		})
	}
	if s.pub.workers == nil {
		hand()
		return
	}
	go func() { // the reply need not wait for the confirmation
		defer s.pub.workers.release(1)
		hand()
	}()
}

// confirmed records that the broker has the request.
func (r *request) confirmed() {
	r.sender.expect(r.series, r.sequence, 1)
	r.series.count(recording.Confirmed, 1, driver.Now())
}

// answered records the reply.
func (r *request) answered(now int64, reply *driver.Message) {
	shard := r.sender.shard
	r.series.add(recording.BytesReceived, int64(len(reply.Body)))
	r.series.record(shard, r.loop, recording.RequestLatency, r.due, now-r.due)
	r.series.record(shard, r.loop, recording.RequestTime, r.due, now-r.sent)
}

// failed records that there is no reply, because of an error or after the timeout.
func (r *request) failed(waiting context.Context, now int64, err error) error {
	s := r.sender
	if waiting.Err() != nil {
		r.series.add(recording.Unanswered, 1)
	}
	err = s.pub.driver.Wrap("request", s.pub.topic.explain(err))
	r.series.fail("request", s.pub.driver.KindOf(err))
	r.series.record(s.shard, r.loop, recording.FailedLatency, r.due, now-r.due)
	return err
}
