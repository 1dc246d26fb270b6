package engine

import (
	"context"
	"errors"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// caller numbers requests, one after the other. Those that are under way at a time go out in an order that is nobody's, so that each has a
// caller of its own.
type caller struct {
	id     uint64
	track  *account.Producer
	course *account.Recorder
}

// call takes an idle caller, or makes one.
func (s *Sender) call() caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.callers) - 1
	if last < 0 {
		return s.pub.newCaller()
	}
	c := s.callers[last]
	s.callers = s.callers[:last]
	return c
}

// hangUp gives a caller back.
func (s *Sender) hangUp(c caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers = append(s.callers, c)
}

// request is one on its way.
type request struct {
	sender    *Sender
	series    *Series
	caller    caller
	sequence  uint64
	due, sent int64
	loop      recording.Loop
}

// Request sends one message and waits so long for the reply, which comes by way of replies where the broker has no request and reply of its own,
// for whom that is nil. The latency runs from the due time, or from the sending in a closed loop.
func (s *Sender) Request(ctx context.Context, timeout time.Duration, m driver.Message, at Timing, replies *Replies) (driver.Message, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := &request{sender: s, series: s.series.Load()}
	if replies == nil {
		return r.ofBroker(waiting, &m, at)
	}
	return r.byTopics(ctx, waiting, &m, at, replies)
}

// ofBroker asks where the broker has request and reply of its own.
func (r *request) ofBroker(ctx context.Context, m *driver.Message, at Timing) (driver.Message, error) {
	s := r.sender
	requester, ok := s.pub.producer.(driver.Requester)
	if !ok {
		return driver.Message{}, s.pub.driver.Wrap("request", errors.ErrUnsupported)
	}
	attachStamp(m, s.stamp)
	r.caller = s.call()
	defer s.hangUp(r.caller)
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

// begin numbers and stamps a request, which is handed over next.
func (r *request) begin(m *driver.Message, at Timing) {
	s := r.sender
	r.sent, r.due = driver.Now(), at.Due
	r.sequence = r.caller.track.Next()
	r.caller.course.Sent(r.sent, r.sequence)
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
		stamp := Stamp{Run: s.pub.run.ID, Producer: r.caller.id, Sequence: r.sequence, Closed: r.loop == recording.Closed, Due: r.due, Sent: r.sent}
		writeStamp(&stamp, m, s.stamp, new([StampSize]byte))
	}
}

// confirmed says that the broker has the request.
func (r *request) confirmed() {
	r.sender.expect(r.series, r.caller.track, r.sequence, 1)
	r.series.count(recording.Confirmed, 1, driver.Now())
}

// answered says that the reply is there.
func (r *request) answered(now int64, reply *driver.Message) {
	shard := r.sender.shard
	r.series.add(recording.BytesReceived, int64(len(reply.Body)))
	r.series.record(shard, r.loop, recording.RequestLatency, r.due, now-r.due)
	r.series.record(shard, r.loop, recording.RequestTime, r.due, now-r.sent)
}

// failed says that there is no reply: because of an error, or because it was waited for long enough, or by a test that has ended.
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
