package sqs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var errSettled = &entryError{"ReceiptHandleIsInvalid", "the delivery is settled already"}

// Settle settles up to ten messages with each request. Each message has its own result.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o == driver.Reject {
		return fmt.Errorf("reject: a queue has only its own redrive policy: %w", errors.ErrUnsupported)
	}
	return r.Consumer.Settle(b, func(all []*delivery) []error { return r.end(ctx, all, o, r.delay) })
}

// end settles, with as many requests under way as the consumer may have, and returns the error of
// each message.
func (r *consumer) end(ctx context.Context, all []*delivery, o driver.Outcome, delay time.Duration) []error {
	errs := make([]error, len(all))
	if len(all) <= maxEntries {
		r.request(ctx, all, errs, o, delay)
		return errs
	}
	var running sync.WaitGroup
	turns := make(chan struct{}, r.requests)
	for begin := 0; begin < len(all); begin += maxEntries {
		end := min(begin+maxEntries, len(all))
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			r.request(ctx, all[begin:end], errs[begin:end], o, delay)
		})
	}
	running.Wait()
	return errs
}

// request settles up to ten deliveries.
func (r *consumer) request(ctx context.Context, all []*delivery, errs []error, o driver.Outcome, delay time.Duration) {
	if len(all) == 0 {
		return
	}
	within, cancel := r.conn.within(ctx)
	defer cancel()
	for i := range errs {
		errs[i] = errNoAnswer
	}
	var done []*string
	var failed []types.BatchResultErrorEntry
	var err error
	if o == driver.Requeue {
		done, failed, err = r.show(within, all, int32(delay/time.Second)) //gosec:disable G115 -- the option has limits
	} else {
		done, failed, err = r.remove(within, all)
	}
	if err != nil {
		err = r.conn.reason(ctx, within, err)
		for i := range errs {
			errs[i] = err
		}
		return
	}
	for _, id := range done {
		if n, ok := entry(id, len(all)); ok {
			errs[n] = nil
		}
	}
	refused(failed, errs)
}

// remove deletes messages.
func (r *consumer) remove(
	ctx context.Context, all []*delivery,
) (done []*string, failed []types.BatchResultErrorEntry, err error) {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(all))
	for i, d := range all {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: ids[i], ReceiptHandle: d.Handle.receipt}
	}
	out, err := r.client.DeleteMessageBatch(
		ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(r.url), Entries: entries},
	)
	if err != nil {
		return nil, nil, err
	}
	for i := range out.Successful {
		done = append(done, out.Successful[i].Id)
	}
	return done, out.Failed, nil
}

// show makes messages visible after so many seconds.
func (r *consumer) show(
	ctx context.Context, all []*delivery, seconds int32,
) (done []*string, failed []types.BatchResultErrorEntry, err error) {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(all))
	for i, d := range all {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
			Id: ids[i], ReceiptHandle: d.Handle.receipt, VisibilityTimeout: seconds,
		}
	}
	out, err := r.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: aws.String(r.url), Entries: entries,
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range out.Successful {
		done = append(done, out.Successful[i].Id)
	}
	return done, out.Failed, nil
}

// giveBack requeues messages when the consumer closes. A message that the service does not have for
// this consumer is not an error.
func (r *consumer) giveBack(ctx context.Context, all []*delivery) error {
	for _, err := range r.end(ctx, all, driver.Requeue, 0) {
		if err != nil && !errors.As(err, new(*entryError)) {
			return err
		}
	}
	return nil
}
