package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// Request sends one message and waits for the reply, which arrives at replies; nil if the broker
// has requests. The latency runs from the due time, or from the sending in a closed loop.
func (s *Sender) Request(
	ctx context.Context, timeout time.Duration, m driver.Message, at Timing, replies *Replies,
) (driver.Message, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make(chan answer, 2) // the reply, and the failure of the send
	if replies != nil {
		id := replies.expect(answers)
		defer replies.forget(id)
		if err := correlate(s.pub.driver, &m, id, replies.topic); err != nil {
			return driver.Message{}, refused(s.pub.driver, "request", err)
		}
	}
	f := newReceipted(s, driver.Batch{m}, at)
	f.op = "request"
	f.end = func(f *flight) {
		if err := f.receipts[0].Err; err != nil {
			answers <- answer{err: err, refused: f.sent == 0}
		}
	}
	if replies == nil {
		f.ask = func(m driver.Message) { s.askBroker(waiting, m, answers, f.done) }
	}
	s.pub.topic.unordered.Store(true) // requests that are under way together have no order
	due := cmp.Or(at.Due, driver.Now())
	f.depart(waiting, ctx) // it may be confirmed after the reply
	a := await(waiting, answers)
	if a.err == nil {
		s.answered(f, a.reply)
		return a.reply, nil
	}
	s.unanswered(f, a, due, waiting.Err() != nil)
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
	series.record(s.shard, f.loop, recording.RequestLatency, due, now-due)
	series.record(s.shard, f.loop, recording.RequestTime, due, now-f.sent)
}

// unanswered counts a request that failed. A request of a closed loop was due when it was made.
func (s *Sender) unanswered(f *flight, a answer, due int64, late bool) {
	series := s.series.Load()
	if late && !a.refused {
		series.add(recording.Unanswered, 1)
	}
	series.Fail("request", s.pub.driver.KindOf(a.err))
	series.record(s.shard, f.loop, recording.FailedLatency, due, driver.Now()-due)
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

var errNoReplyTo = errors.New("the message asks for no reply: it has no topic for it")

// Reply answers a message that this consumer received. If the broker has no requests, the reply
// goes by the connection e to the topic that the message names, and Reply waits until the broker
// has it.
func (c *Consumer) Reply(ctx context.Context, e Endpoint, to, reply driver.Message) error {
	series := c.series.Load()
	var err error
	if by, ok := c.consumer.(driver.Replier); ok {
		err = by.Reply(ctx, to, reply)
	} else {
		err = c.run.reply(ctx, e, &to, &reply)
	}
	if err != nil {
		err = c.driver.Wrap("reply", err)
		series.Fail("reply", c.driver.KindOf(err))
		return err
	}
	series.add(recording.BytesSent, int64(len(reply.Body)))
	return nil
}

// reply sends a reply to the topic that a message names.
func (r *Run) reply(ctx context.Context, e Endpoint, to, reply *driver.Message) error {
	d := e.Address.Driver
	id, replyTo := correlation(d, to)
	if len(replyTo) == 0 {
		return refused(d, "reply", errNoReplyTo)
	}
	if err := correlate(d, reply, string(id), ""); err != nil {
		return refused(d, "reply", err)
	}
	by, err := r.replier(ctx, e, string(replyTo))
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	by.Send(ctx, driver.Batch{*reply}, Timing{}, func(receipts []Receipt) { sent <- receipts[0].Err })
	return <-sent
}

// Replies on their way to one topic at most, and workers for them.
const (
	repliesWindow  = 4096
	repliesWorkers = 32
)

// replier opens a sender of replies, or returns the one that is open. Its topic and its series are
// in no result.
func (r *Run) replier(ctx context.Context, e Endpoint, topic string) (*Sender, error) {
	return opening(ctx, r, e, "replier "+topic, func(ctx context.Context, conn driver.Conn) (*Sender, error) {
		options, err := e.Address.Resolve(driver.OnProducer, nil)
		if err != nil {
			return nil, err
		}
		config := driver.ProducerConfig{Topic: topic, Window: repliesWindow, Options: options}
		if !e.Address.Driver.Features.Async {
			config.Workers = repliesWorkers
		}
		pub, err := r.NewPublisher(ctx, conn, newTopic(r, e.Address, topic), config)
		if err != nil {
			return nil, err
		}
		return pub.NewSender(StampOff, &Series{phases: r.phases, shards: 1}), nil
	})
}

// correlate makes m a request or a reply with an identifier by two headers; the reply to a request
// goes to a topic. The request of another program may have no identifier.
func correlate(d *driver.Driver, m *driver.Message, id, replyTo string) error {
	if !d.Features.Headers {
		return fmt.Errorf("%s has no headers to match requests and replies: %w", d.Name, errors.ErrUnsupported)
	}
	names := d.Correlation
	for _, h := range m.Headers {
		if h.Name == names.ID || h.Name == names.ReplyTo {
			return fmt.Errorf("header %q is used to match requests and replies: choose another name", h.Name)
		}
	}
	m.Headers = slices.Clip(m.Headers)
	if id != "" {
		m.Headers = append(m.Headers, driver.Header{Name: names.ID, Value: []byte(id)})
	}
	if replyTo != "" {
		m.Headers = append(m.Headers, driver.Header{Name: names.ReplyTo, Value: []byte(replyTo)})
	}
	return nil
}

// correlation returns the identifier of a message and the topic for the reply; both may be empty.
func correlation(d *driver.Driver, m *driver.Message) (id, replyTo []byte) {
	for i := range m.Headers {
		switch h := &m.Headers[i]; h.Name {
		case d.Correlation.ID:
			id = h.Value
		case d.Correlation.ReplyTo:
			replyTo = h.Value
		}
	}
	return id, replyTo
}

// refused is an error of a message that cannot be sent as it is.
func refused(d *driver.Driver, op string, err error) error {
	return &driver.Error{Kind: driver.Rejected, Driver: d.Name, Op: op, Err: err}
}
