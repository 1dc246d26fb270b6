package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle implements [driver.Consumer]. It returns when the servers have answered.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	r.closing.RLock()
	defer r.closing.RUnlock()
	if r.closed {
		return driver.ErrClosed
	}
	all, err := r.let(b)
	return errors.Join(err, r.end(ctx, all, o))
}

// let takes what is to be settled from what is held. Whatever becomes of it, it is the application's no more.
func (r *consumer) let(b driver.Batch) (all []*delivery, err error) {
	for _, m := range b {
		if d, ok := m.Token.(*delivery); ok && r.held.Settled(d) {
			all = append(all, d)
		} else {
			err = errSettled
		}
	}
	return all, err
}

// end settles deliveries.
func (r *consumer) end(ctx context.Context, all []*delivery, o driver.Outcome) error {
	switch o {
	case driver.Ack:
		return r.ack(ctx, all)
	case driver.Requeue:
		return r.requeue(ctx, all, r.cfg.Options.Duration("requeueDelay"))
	case driver.Reject:
		return r.each(ctx, all, r.reject)
	default:
		return fmt.Errorf("%v: %w", o, errors.ErrUnsupported)
	}
}

// ack acknowledges, by one request to each server.
func (r *consumer) ack(ctx context.Context, all []*delivery) error {
	from := map[*server][]*v2.AckMessageEntry{}
	for _, d := range all {
		from[d.from] = append(from[d.from], &v2.AckMessageEntry{MessageId: d.id, ReceiptHandle: d.handle})
	}
	var failed error
	for s, entries := range from {
		err := r.call(ctx, func(ctx context.Context) error {
			answer, err := s.AckMessage(ctx, &v2.AckMessageRequest{Group: r.conn.resource(r.group), Topic: r.conn.resource(r.cfg.Topic), Entries: entries}, waiting)
			if err != nil {
				return err
			}
			if answer.GetStatus().GetCode() != v2.Code_MULTIPLE_RESULTS {
				return check(answer.GetStatus())
			}
			errs := make([]error, len(answer.GetEntries()))
			for i, one := range answer.GetEntries() {
				errs[i] = check(one.GetStatus())
			}
			return driver.JoinSettled(errs...)
		})
		failed = errors.Join(failed, err)
	}
	return failed
}

// requeue has messages delivered again after a while.
func (r *consumer) requeue(ctx context.Context, all []*delivery, after time.Duration) error {
	return r.each(ctx, all, func(ctx context.Context, d *delivery) error { return r.again(ctx, d, after) })
}

// again changes the time for which a message is invisible.
func (r *consumer) again(ctx context.Context, d *delivery, after time.Duration) error {
	answer, err := d.from.ChangeInvisibleDuration(ctx, &v2.ChangeInvisibleDurationRequest{
		Group: r.conn.resource(r.group), Topic: r.conn.resource(r.cfg.Topic), ReceiptHandle: d.handle, MessageId: d.id, InvisibleDuration: duration(after),
	}, waiting)
	if err != nil {
		return err
	}
	return check(answer.GetStatus())
}

// reject makes a message a dead letter of the group's.
func (r *consumer) reject(ctx context.Context, d *delivery) error {
	answer, err := d.from.ForwardMessageToDeadLetterQueue(ctx, &v2.ForwardMessageToDeadLetterQueueRequest{
		Group: r.conn.resource(r.group), Topic: r.conn.resource(r.cfg.Topic), ReceiptHandle: d.handle, MessageId: d.id,
		DeliveryAttempt: 1, MaxDeliveryAttempts: 1,
	}, waiting)
	if err != nil {
		return err
	}
	return check(answer.GetStatus())
}

// each makes a request for each message, for the protocol has none for several, some of them at a time.
func (r *consumer) each(ctx context.Context, all []*delivery, do func(ctx context.Context, d *delivery) error) error {
	const atATime = 32
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for from := range min(atATime, len(all)) {
		running.Go(func() {
			for i := from; i < len(all); i += atATime {
				errs[i] = r.call(ctx, func(ctx context.Context) error { return do(ctx, all[i]) })
			}
		})
	}
	running.Wait()
	return driver.JoinSettled(errs...)
}

// call bounds a request, which the servers must know to be the consumer's.
func (r *consumer) call(ctx context.Context, do func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, r.conn.options.Duration("requestTimeout"))
	defer cancel()
	return called(within, do(r.conn.servers.as(within, r.id)))
}

// giveBack has what is not settled, or was never received, delivered again at once. What has been for too long in the client's hands is delivered again already.
func (r *consumer) giveBack(ctx context.Context) error {
	all := append(r.in.Waiting(), r.held.Clear()...)
	r.in.Clear()
	return r.each(ctx, all, func(ctx context.Context, d *delivery) error {
		err := r.again(ctx, d, 0)
		var answer *statusError
		if errors.As(err, &answer) && answer.code == v2.Code_INVALID_RECEIPT_HANDLE {
			return nil
		}
		return err
	})
}
