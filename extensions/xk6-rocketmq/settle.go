package rocketmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle returns when the servers have answered.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	return r.Consumer.Settle(b, func(all []*delivery) []error {
		switch o {
		case driver.Ack:
			return r.ack(ctx, all)
		case driver.Requeue:
			return r.requeue(ctx, all, r.cfg.Options.Duration("requeueDelay"))
		default:
			return r.each(ctx, all, r.reject)
		}
	})
}

// ack acknowledges with one request to each server.
func (r *consumer) ack(ctx context.Context, all []*delivery) []error {
	entries := map[*server][]*v2.AckMessageEntry{}
	places := map[*server][]int{} // of the entries in all
	for i, d := range all {
		s := d.Handle.from
		entries[s] = append(entries[s], &v2.AckMessageEntry{MessageId: d.Handle.id, ReceiptHandle: d.Handle.receipt})
		places[s] = append(places[s], i)
	}
	errs := make([]error, len(all))
	for s := range entries {
		answer, err := r.ackAt(ctx, s, entries[s])
		for n, i := range places[s] {
			errs[i] = err
			if err == nil && n < len(answer) {
				errs[i] = check(answer[n].GetStatus())
			}
		}
	}
	return errs
}

// ackAt returns the results of the entries, or none if all of them are acknowledged.
func (r *consumer) ackAt(
	ctx context.Context, s *server, entries []*v2.AckMessageEntry,
) (results []*v2.AckMessageResultEntry, err error) {
	err = r.call(ctx, func(ctx context.Context) error {
		group, topic := r.conn.resource(r.group), r.conn.resource(r.cfg.Topic)
		answer, err := s.AckMessage(ctx, &v2.AckMessageRequest{Group: group, Topic: topic, Entries: entries}, waiting)
		if err != nil {
			return err
		}
		if answer.GetStatus().GetCode() != v2.Code_MULTIPLE_RESULTS {
			return check(answer.GetStatus())
		}
		if results = answer.GetEntries(); len(results) != len(entries) {
			return fmt.Errorf("%d results for %d messages", len(results), len(entries))
		}
		return nil
	})
	return results, err
}

// requeue makes messages visible after a delay.
func (r *consumer) requeue(ctx context.Context, all []*delivery, delay time.Duration) []error {
	return r.each(ctx, all, func(ctx context.Context, d *delivery) error {
		answer, err := d.Handle.from.ChangeInvisibleDuration(ctx, &v2.ChangeInvisibleDurationRequest{
			Group: r.conn.resource(r.group), Topic: r.conn.resource(r.cfg.Topic),
			ReceiptHandle: d.Handle.receipt, MessageId: d.Handle.id, InvisibleDuration: duration(delay),
		}, waiting)
		if err != nil {
			return err
		}
		return check(answer.GetStatus())
	})
}

// reject moves a message to the dead letters of the group.
func (r *consumer) reject(ctx context.Context, d *delivery) error {
	answer, err := d.Handle.from.ForwardMessageToDeadLetterQueue(ctx, &v2.ForwardMessageToDeadLetterQueueRequest{
		Group: r.conn.resource(r.group), Topic: r.conn.resource(r.cfg.Topic),
		ReceiptHandle: d.Handle.receipt, MessageId: d.Handle.id, DeliveryAttempt: 1, MaxDeliveryAttempts: 1,
	}, waiting)
	if err != nil {
		return err
	}
	return check(answer.GetStatus())
}

// each makes a request for each message, some at a time, because the protocol has none for several.
func (r *consumer) each(ctx context.Context, all []*delivery, do func(ctx context.Context, d *delivery) error) []error {
	const atATime = 32
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for first := range min(atATime, len(all)) {
		running.Go(func() {
			for i := first; i < len(all); i += atATime {
				errs[i] = r.call(ctx, func(ctx context.Context) error { return do(ctx, all[i]) })
			}
		})
	}
	running.Wait()
	return errs
}

// call makes a request with the consumer's id and requestTimeout.
func (r *consumer) call(ctx context.Context, do func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, r.conn.options.Duration("requestTimeout"))
	defer cancel()
	return called(within, do(r.conn.servers.as(within, r.id)))
}

// giveBack makes messages visible at once. An expired receipt is not an error, because the message
// is visible already.
func (r *consumer) giveBack(ctx context.Context, all []*delivery) error {
	errs := r.requeue(ctx, all, 0)
	for i, err := range errs {
		var answer *statusError
		if errors.As(err, &answer) && answer.code == v2.Code_INVALID_RECEIPT_HANDLE {
			errs[i] = nil
		}
	}
	return cmp.Or(errs...)
}
