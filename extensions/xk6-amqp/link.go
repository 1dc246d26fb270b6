package amqp

import (
	"context"
	"sync"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// link is one AMQP connection. The client library's own recovery is off: it would keep messages
// back while a connection is down.
type link struct{ *redial.Link[*connection] }

// connection is an open AMQP connection.
type connection struct {
	*amqp.Connection
	socket  *socket
	reason  atomic.Pointer[string] // why the broker blocks this connection; nil while it does not
	watched chan struct{}          // closed when the goroutine has ended
	opening sync.Mutex             // of channels
}

// channel is an open AMQP channel of a connection.
type channel struct {
	*amqp.Channel
	conn   *connection
	number uint16
	closes chan *amqp.Error // gets the error that closed the channel, and is closed then
	gone   chan *amqp.Error // the same, for the producer's loop
	once   sync.Once
	why    error
	asking sync.Mutex // the library mixes up the answers to concurrent methods
}

func newLink(d *dialer, purpose string) link {
	return link{redial.New(
		func(ctx context.Context) (*connection, error) { return d.dial(ctx, purpose) },
		func(c *connection) bool { return c.IsClosed() },
	)}
}

// watch stores whether the broker blocks the connection, until it closes.
func (c *connection) watch(blocks <-chan amqp.Blocking) {
	defer close(c.watched)
	for b := range blocks {
		if b.Active {
			c.reason.Store(&b.Reason)
		} else {
			c.reason.Store(nil)
		}
	}
}

// blocked returns an error of kind throttled while the broker blocks this connection.
func (c *connection) blocked() error {
	if reason := c.reason.Load(); reason != nil {
		return blockedError(*reason)
	}
	return nil
}

// channel opens and prepares a channel. The library's calls have no context: one that outlives ctx
// is undone when the broker answers.
func (l link) channel(ctx context.Context, prepare func(*amqp.Channel) error) (*channel, error) {
	c, err := l.Get(ctx)
	if err != nil {
		return nil, err
	}
	type opened struct {
		channel *channel
		err     error
	}
	answer := make(chan opened, 1)
	go func() {
		ch, number, err := c.open()
		if err != nil {
			answer <- opened{err: err}
			return
		}
		closes, gone := ch.NotifyClose(make(chan *amqp.Error, 1)), ch.NotifyClose(make(chan *amqp.Error, 1))
		if err := prepare(ch); err != nil {
			_ = ch.Close()
			answer <- opened{err: err}
			return
		}
		answer <- opened{channel: &channel{Channel: ch, conn: c, number: number, closes: closes, gone: gone}}
	}()
	select {
	case o := <-answer:
		return o.channel, o.err
	case <-ctx.Done():
		go func() {
			if o := <-answer; o.channel != nil {
				_ = o.channel.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// open opens a channel and returns its number, which the library does not export.
func (c *connection) open() (*amqp.Channel, uint16, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	ch, err := c.Channel()
	return ch, c.socket.frames.latest(), err
}

// do runs synchronous methods on a channel of their own: the broker closes it if one fails.
func (l link) do(ctx context.Context, methods func(*amqp.Channel) error) error {
	ch, err := l.channel(ctx, methods)
	if err != nil {
		return err
	}
	return ch.end(ctx)
}

// end closes a channel. The broker has read everything sent on it when end returns nil.
func (ch *channel) end(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- ch.Close() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes a channel. A closed channel is no error.
func (ch *channel) Close() error {
	ch.asking.Lock()
	defer ch.asking.Unlock()
	return ch.Channel.Close()
}

// cause waits until a channel is closed and returns the reason.
func (ch *channel) cause() error {
	ch.once.Do(func() {
		ch.why = amqp.ErrClosed
		if err := <-ch.closes; err != nil {
			ch.why = err
		}
	})
	return ch.why
}

// explain returns the reason for a closed channel instead of a call's error.
func (ch *channel) explain(err error) error {
	if err != nil && ch.IsClosed() {
		return ch.cause()
	}
	return err
}

// close closes the connection. It hangs up if ctx ends before the broker has answered.
func (l link) close(ctx context.Context) error {
	return l.Close(func(c *connection) error {
		hangUp := context.AfterFunc(ctx, func() { _ = c.socket.Close() })
		defer hangUp()
		var err error
		if !c.IsClosed() {
			err = c.Close()
		}
		_ = c.socket.Close()
		<-c.watched
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	})
}
