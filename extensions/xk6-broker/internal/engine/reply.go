package engine

import (
	"context"
	"errors"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

var errNoReplyTo = errors.New("the message asks for no reply: it does not say where that should go")

// Reply answers a message that this consumer received. Where the broker has no request and reply of its own it goes out by a connection that is
// described so, to the topic that the message names, and is done when the broker has it.
func (c *Consumer) Reply(ctx context.Context, e Endpoint, to, reply driver.Message) error {
	series := c.series.Load()
	var size int64
	var err error
	if replier, ok := c.consumer.(driver.Replier); ok {
		size, err = int64(len(reply.Body)), replier.Reply(ctx, to, reply)
	} else {
		size, err = c.run.reply(ctx, e, &to, reply)
	}
	if err != nil {
		err = c.driver.Wrap("reply", err)
		series.fail("reply", c.driver.KindOf(err))
		return err
	}
	series.add(recording.BytesSent, size)
	return nil
}

// replier sends replies to one topic. They carry no stamp: whoever asked knows them by what they repeat.
type replier struct {
	producer driver.Producer
	window   *window
	workers  *window // nil where Send does not wait for the broker
}

const (
	repliesWindow  = 4096
	repliesWorkers = 32
)

// reply sends one, and tells how many bytes of body that took.
func (r *Run) reply(ctx context.Context, e Endpoint, to *driver.Message, reply driver.Message) (int64, error) {
	d := e.Address.Driver
	id, replyTo := correlation(d, to)
	if len(replyTo) == 0 {
		return 0, refused(d, "reply", errNoReplyTo)
	}
	if err := correlate(d, &reply, string(id), "", 0); err != nil {
		return 0, refused(d, "reply", err)
	}
	by, err := r.replier(ctx, e, string(replyTo))
	if err != nil {
		return 0, err
	}
	return int64(len(reply.Body)), by.send(ctx, reply)
}

// refused is an error of a message that cannot be sent as it is.
func refused(d *driver.Driver, op string, err error) error {
	return &driver.Error{Kind: driver.Rejected, Driver: d.Name, Op: op, Err: err}
}

// replier gives the one to a topic, open.
func (r *Run) replier(ctx context.Context, e Endpoint, topic string) (*replier, error) {
	one, err := r.connections.of(e)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if by, ok := one.repliers[topic]; ok {
		return by, nil
	}
	conn, err := one.connect(ctx, e)
	if err != nil {
		return nil, err
	}
	options, err := e.Address.Resolve(driver.OnProducer, nil)
	if err != nil {
		return nil, err
	}
	by := &replier{window: newWindow(repliesWindow)}
	config := driver.ProducerConfig{Topic: topic, Window: repliesWindow, Options: options}
	if !e.Address.Driver.Features.Async {
		config.Workers, by.workers = repliesWorkers, newWindow(repliesWorkers)
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	if by.producer, err = conn.NewProducer(ctx, config); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished { // nobody would close it
		return nil, errors.Join(ErrEnded, by.producer.Close(ctx))
	}
	r.repliers = append(r.repliers, by)
	one.repliers[topic] = by
	return by, nil
}

// send sends one and waits until the broker has it.
func (by *replier) send(ctx context.Context, m driver.Message) error {
	if _, err := by.window.acquire(ctx, 1, 1); err != nil {
		return err
	}
	if by.workers != nil {
		if _, err := by.workers.acquire(ctx, 1, 1); err != nil {
			by.window.release(1)
			return err
		}
		defer by.workers.release(1)
	}
	sent := make(chan error, 1)
	by.producer.Send(ctx, driver.Batch{m}, func(_ int, err error) {
		by.window.release(1)
		sent <- err
	})
	return <-sent
}
