package amqp1

import (
	"context"
	"errors"
	"sync/atomic"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// relay is a link of a consumer's on which each message says where it goes (an anonymous terminus).
type relay struct {
	session *amqp.Session
	sender  *amqp.Sender
	on      *connection
	lost    atomic.Bool
}

func newRelay(c *conn) *redial.Link[*relay] {
	return redial.New(func(ctx context.Context) (*relay, error) {
		y := &relay{}
		err := c.session(ctx, func(ctx context.Context, s *amqp.Session, on *connection) (err error) {
			y.session, y.on = s, on
			y.sender, err = s.NewSender(ctx, "", nil)
			return err
		})
		return y, err
	}, func(y *relay) bool { return y.lost.Load() || y.on.broken() })
}

// Reply answers a message that asked for a reply, and waits for the broker to accept the answer.
func (r *consumer) Reply(ctx context.Context, to, reply driver.Message) error {
	if r.life.Err() != nil {
		return driver.ErrClosed
	}
	d, ok := to.Token.(*delivery)
	if !ok || d.message.Properties == nil || d.message.Properties.ReplyTo == nil {
		return &kindError{driver.Rejected, errors.New("the message asks for no reply")}
	}
	asked := d.message.Properties
	var e envelope
	if err := e.fill(&reply, properties{priority: usual}); err != nil {
		return err
	}
	if e.Properties == nil {
		e.Properties = &amqp.MessageProperties{}
	}
	e.Properties.To, e.Properties.CorrelationID = asked.ReplyTo, asked.CorrelationID
	if asked.CorrelationID == nil {
		e.Properties.CorrelationID = asked.MessageID
	}
	y, err := r.replies.Get(ctx)
	if err != nil {
		return err
	}
	receipt, err := y.sender.SendWithReceipt(ctx, &e.Message, nil)
	if err == nil {
		var state amqp.DeliveryState
		if state, err = receipt.Wait(ctx); err == nil {
			return outcome(state, false)
		}
	}
	if closedBelow(err) {
		y.lost.Store(true)
	}
	return err
}
