package amqp1

import (
	"context"
	"fmt"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// desk is where a broker's management is asked: one request at a time, over a session that is opened when it is first needed and after it broke.
type desk struct {
	conn *conn
	link *redial.Link[*pair]
	turn chan struct{} // a lock that can be waited for with a context
}

// pair is a link for requests and one for replies.
type pair struct {
	session  *amqp.Session
	sender   *amqp.Sender
	receiver *amqp.Receiver
	on       *connection
	asked    uint64 // how many requests
	lost     bool
}

func newDesk(c *conn, attach func(ctx context.Context, p *pair) error) *desk {
	d := &desk{conn: c, turn: make(chan struct{}, 1)}
	d.link = redial.New(func(ctx context.Context) (*pair, error) {
		p := &pair{}
		err := c.session(ctx, func(ctx context.Context, s *amqp.Session, on *connection) error {
			p.session, p.on = s, on
			return attach(ctx, p)
		})
		return p, err
	}, func(p *pair) bool { return p.lost || p.on.broken() })
	return d
}

// ask waits for its turn, and for the reply to one request.
func (d *desk) ask(ctx context.Context, request func(p *pair) *amqp.Message) (*amqp.Message, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err := d.link.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("the broker's management: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.conn.timeout)
	defer cancel()
	p.asked++
	reply, err := p.exchange(ctx, request(p))
	if err != nil {
		p.lost = true // a reply that comes late is not to be taken for another's
		_ = p.session.Close(ctx)
		return nil, fmt.Errorf("the broker's management: %w", err)
	}
	return reply, nil
}

func (p *pair) exchange(ctx context.Context, request *amqp.Message) (*amqp.Message, error) {
	if err := p.sender.Send(ctx, request, nil); err != nil {
		return nil, err
	}
	reply, err := p.receiver.Receive(ctx, nil)
	if err != nil {
		return nil, err
	}
	return reply, p.receiver.AcceptMessage(ctx, reply)
}
