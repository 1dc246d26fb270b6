package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/persistent"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// mostSettled is how many messages are settled at a time; the product's own clients have 2000 at most.
const mostSettled = 1000

// Settle implements [driver.Consumer]. It returns when the settlements are on their way; the server answers none.
func (r *member) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	r.closing.RLock()
	defer r.closing.RUnlock()
	if r.closed {
		return driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	say, err := r.outcome(o)
	if err != nil {
		return err
	}
	var failed error
	for len(b) > 0 {
		s := origin(b[0])
		n := 1
		for n < len(b) && origin(b[n]) == s {
			n++
		}
		failed = errors.Join(failed, s.settle(ctx, b[:n], say))
		b = b[n:]
	}
	return failed
}

// origin is the subscription that a message came by; nil of one of another consumer's.
func origin(m driver.Message) *subscription {
	d, ok := m.Token.(*delivery)
	if !ok {
		return nil
	}
	return d.from
}

// request says what becomes of messages.
type request func(s *subscription, ids []*shared.UUID) *persistent.ReadReq

func (r *member) outcome(o driver.Outcome) (request, error) {
	switch {
	case o == driver.Ack:
		return func(s *subscription, ids []*shared.UUID) *persistent.ReadReq {
			return &persistent.ReadReq{Content: &persistent.ReadReq_Ack_{Ack: &persistent.ReadReq_Ack{Id: s.id, Ids: ids}}}
		}, nil
	case o == driver.Requeue:
		return nack(persistent.ReadReq_Nack_Retry, "requeued"), nil
	case o == driver.Reject && r.cfg.Options.String("reject") == "skip":
		return nack(persistent.ReadReq_Nack_Skip, "rejected"), nil
	case o == driver.Reject:
		return nack(persistent.ReadReq_Nack_Park, "rejected"), nil
	}
	return nil, fmt.Errorf("%v: %w", o, errors.ErrUnsupported)
}

func nack(action persistent.ReadReq_Nack_Action, reason string) request {
	return func(s *subscription, ids []*shared.UUID) *persistent.ReadReq {
		return &persistent.ReadReq{Content: &persistent.ReadReq_Nack_{Nack: &persistent.ReadReq_Nack{Id: s.id, Ids: ids, Action: action, Reason: reason}}}
	}
}

// settle sends the settlements of messages that came by this subscription, each once.
func (s *subscription) settle(ctx context.Context, b driver.Batch, say request) error {
	if s == nil {
		return errSettled
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	ids, failed := s.take(b)
	var sent atomic.Bool
	stop := context.AfterFunc(ctx, func() {
		if !sent.Load() { // a stream on which nothing can be sent any more is of no use
			s.cancel()
		}
	})
	defer stop()
	for len(ids) > 0 {
		n := min(len(ids), mostSettled)
		if err := s.stream.Send(say(s, ids[:n])); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errGone // what has ended the stream Receive tells
		}
		ids = ids[n:]
	}
	sent.Store(true)
	return failed
}

// take gives the ids of those messages that are not settled yet.
func (s *subscription) take(b driver.Batch) (ids []*shared.UUID, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, errGone
	}
	ids = make([]*shared.UUID, 0, len(b))
	for _, m := range b {
		if d, _ := m.Token.(*delivery); d.settled {
			failed = errSettled
		} else {
			d.settled = true
			ids = append(ids, d.id)
		}
	}
	s.open -= len(ids)
	s.settled += len(ids)
	return ids, failed
}

// arrive waits until the server has all that was settled, as far as it tells: until it says that no more is with this consumer than came and was not settled.
func (r *member) arrive(ctx context.Context) {
	const most = time.Second // it may have timed out, or the server may not tell everybody
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	r.mu.Lock()
	s := r.current
	r.mu.Unlock()
	for n := 1; ; n++ {
		if _, settled := s.count(); settled == 0 {
			return
		}
		info, err := r.conn.group(ctx, r.cfg.Topic, r.cfg.Group)
		if err != nil {
			return
		}
		open, _ := s.count()
		if with(info, r.name) <= open || !redial.Sleep(ctx, n) {
			return
		}
	}
}

// count is how many messages came by the subscription and are not settled, and how many are; of one that has ended the server knows no more.
func (s *subscription) count() (open, settled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, 0
	}
	return s.open, s.settled
}

// with is how many messages of a group are with one of its consumers.
func with(info *persistent.SubscriptionInfo, name string) (count int) {
	for _, c := range info.GetConnections() {
		if c.GetConnectionName() == name {
			count += int(c.GetInFlightMessages())
		}
	}
	return count
}
