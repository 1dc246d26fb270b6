package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

var errNoReplyTo = errors.New("the message asks for no reply: it has no topic for it")

// Reply answers a message that this consumer received. If the broker has no requests, the reply goes
// by the connection e to the topic that the message names, and Reply waits until the broker has it.
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
	topic := string(replyTo)
	by, err := opening(ctx, r, e, "replier "+topic, func(ctx context.Context, conn driver.Conn) (*replier, error) {
		return r.openReplier(ctx, conn, e.Address, topic)
	})
	if err != nil {
		return err
	}
	return by.send(ctx, *reply)
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
	for _, h := range [2]driver.Header{{Name: names.ID, Value: []byte(id)}, {Name: names.ReplyTo, Value: []byte(replyTo)}} {
		if len(h.Value) > 0 {
			m.Headers = append(m.Headers, h)
		}
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

// replier sends replies to one topic. They carry no stamp.
type replier struct {
	producer driver.Producer
	window   *window // of replies, each of which may take a worker
}

// Replies on their way to one topic, at most: of a driver that waits for the broker, as many as it
// has workers.
const (
	repliesWindow  = 4096
	repliesWorkers = 32
)

func (r *Run) openReplier(ctx context.Context, conn driver.Conn, a *driver.Address, topic string) (*replier, error) {
	options, err := a.Resolve(driver.OnProducer, nil)
	if err != nil {
		return nil, err
	}
	config := driver.ProducerConfig{Topic: topic, Window: repliesWindow, Options: options}
	if !a.Driver.Features.Async {
		config.Window, config.Workers = repliesWorkers, repliesWorkers
	}
	by := &replier{window: newWindow(config.Window)}
	if by.producer, err = conn.NewProducer(ctx, config); err != nil {
		return nil, err
	}
	if !r.closeAtEnd(by.producer.Close) {
		return nil, errors.Join(ErrEnded, by.producer.Close(ctx))
	}
	return by, nil
}

// send sends a reply and waits until the broker has it.
func (by *replier) send(ctx context.Context, m driver.Message) error {
	if _, err := by.window.acquire(ctx, 1, 1); err != nil {
		return err
	}
	sent := make(chan error, 1)
	by.producer.Send(ctx, driver.Batch{m}, func(_ int, err error) {
		by.window.release(1)
		sent <- err
	})
	return <-sent
}
