package k6

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
)

// byTopics reports whether replies come by a second topic, because the broker has no request and
// reply.
func (c *connection) byTopics() bool {
	f := c.address.Driver.Features
	return !f.Requests && f.Start != 0
}

// request sends a message and resolves to the reply.
func (p *producer) request(v, opts sobek.Value) (*sobek.Promise, error) {
	d := p.conn.address.Driver
	if !d.Features.Requests && (d.Features.Start == 0 || !d.Features.Headers) {
		return nil, fmt.Errorf("request: %s has no requests: see conn.features.requests", d.Name)
	}
	o, err := readOptions("request", opts)
	if err != nil {
		return nil, err
	}
	timeout := o.duration("timeout", 5*time.Second)
	if err := o.done(); err != nil {
		return nil, err
	}
	batch, single, err := p.messages(v)
	if err == nil && !single {
		err = errors.New("one message at a time")
	}
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	due := p.conn.in.due.next()
	var vu uint64
	if state := p.conn.in.vu.State(); state != nil { // without it there is no sender
		vu = state.VUID
	}
	made, settle := p.conn.in.promise("request")
	p.withSender(settle, unsent{"request", 1, due}, func(ctx context.Context, s *engine.Sender, opening int64) {
		go func() {
			replies, took, err := p.openReplies(ctx, vu, s.Series())
			if err != nil {
				s.Series().Unsent("request", 1, due, p.conn.address.Driver.KindOf(err))
				settle(nil, err)
				return
			}
			reply, err := s.Request(ctx, timeout, batch[0], due.After(opening+took), replies)
			settle(outcome(func() (any, error) {
				in := &engine.Buffer{Messages: driver.Batch{reply}, Stamps: make([]engine.Stamp, 1), Stamped: make([]bool, 1)}
				return p.conn.in.newMessage(nil, in, 0), err
			}), nil)
		}()
	})
	return made, nil
}

// openReplies opens the receiver of the replies, nil if the broker has request and reply, and
// returns how long that took in ns. A named reply topic has one receiver; else each connection has
// one.
func (p *producer) openReplies(ctx context.Context, vu uint64, series *engine.Series) (*engine.Replies, int64, error) {
	if !p.conn.byTopics() {
		return nil, 0, nil
	}
	if there := p.replies.Load(); there != nil {
		return there, 0, nil
	}
	name := connectionName("producers", vu, p.spread)
	if p.named != "" {
		name = connectionName("producers", 0, 1)
	}
	asked, run := driver.Now(), p.conn.in.run
	opened, err := run.Replies(ctx, p.conn.endpoint(name), p.config.Topic, p.named, series)
	if err != nil {
		return nil, 0, err
	}
	topic := cmp.Or(p.named, "topics of their own")
	run.Topic(p.conn.address, p.config.Topic).Use("replies", map[string]any{"replyTopic": topic})
	p.replies.Store(opened)
	return opened, driver.Now() - asked, nil
}

// reply answers a request.
func (k *consumer) reply(to, v sobek.Value) (*sobek.Promise, error) {
	m, err := k.asMessage(to)
	if err != nil {
		return nil, fmt.Errorf("reply: %w", err)
	}
	reply, err := k.conn.message(v)
	if err != nil {
		return nil, fmt.Errorf("reply: %w", err)
	}
	at := k.conn.endpoint(connectionName("producers", 0, 1))
	return k.with("reply", func(ctx context.Context, c *engine.Consumer, settle settler) {
		settle(sobek.Undefined(), c.Reply(ctx, at, m.in.Messages[m.i], reply))
	}), nil
}
