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

// mostSettled is the greatest number of messages in a settlement; that of the product's clients is
// 2000.
const mostSettled = 1000

// Settle implements [driver.Consumer]. It returns when the settlements are on their way: the server
// answers none.
func (r *member) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	r.closing.RLock()
	defer r.closing.RUnlock()
	if r.closed {
		return driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	settlement, err := r.outcome(o)
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
		failed = errors.Join(failed, s.settle(ctx, b[:n], settlement))
		b = b[n:]
	}
	return failed
}

// origin returns a message's subscription; nil if this driver did not receive it.
func origin(m driver.Message) *subscription {
	d, ok := m.Token.(*delivery)
	if !ok {
		return nil
	}
	return d.from
}

// request returns a request that settles messages.
type request func(s *subscription, ids []*shared.UUID) *persistent.ReadReq

func (r *member) outcome(o driver.Outcome) (request, error) {
	switch {
	case o == driver.Ack:
		return func(s *subscription, ids []*shared.UUID) *persistent.ReadReq {
			return &persistent.ReadReq{
				Content: &persistent.ReadReq_Ack_{Ack: &persistent.ReadReq_Ack{Id: s.id, Ids: ids}},
			}
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
		nack := &persistent.ReadReq_Nack{Id: s.id, Ids: ids, Action: action, Reason: reason}
		return &persistent.ReadReq{Content: &persistent.ReadReq_Nack_{Nack: nack}}
	}
}

// settle sends the settlements of this subscription's messages, each once.
func (s *subscription) settle(ctx context.Context, b driver.Batch, settlement request) error {
	if s == nil {
		return errSettled
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	ids, failed := s.take(b)
	var sent atomic.Bool
	stop := context.AfterFunc(ctx, func() {
		if !sent.Load() { // the stream is blocked
			s.cancel()
		}
	})
	defer stop()
	for len(ids) > 0 {
		n := min(len(ids), mostSettled)
		if err := s.stream.Send(settlement(s, ids[:n])); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errGone // Receive returns the reason
		}
		ids = ids[n:]
	}
	sent.Store(true)
	return failed
}

// take marks messages as settled, and returns the ids of the ones not settled before.
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

// arrive waits until the server has the settlements: until it reports no more messages at this
// consumer than the unsettled ones.
func (r *member) arrive(ctx context.Context) {
	const most = time.Second // messages may have timed out
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
		if held(info, r.name) <= open || !redial.Sleep(ctx, n) {
			return
		}
	}
}

// count returns the numbers of unsettled and settled messages; none of an ended subscription.
func (s *subscription) count() (open, settled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, 0
	}
	return s.open, s.settled
}

// held returns how many messages one of a group's consumers holds.
func held(info *persistent.SubscriptionInfo, name string) (count int) {
	for _, c := range info.GetConnections() {
		if c.GetConnectionName() == name {
			count += int(c.GetInFlightMessages())
		}
	}
	return count
}
