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

// Settle ends deliveries, up to ten by each request. Each has a fate of its own.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	switch {
	case r.leaving.Load():
		return driver.ErrClosed
	case o == driver.Reject:
		return fmt.Errorf("reject: a queue has no such thing; what is delivered too often goes to its dead-letter queue: %w", errors.ErrUnsupported)
	}
	mine := r.claim(b)
	fates := r.end(ctx, mine, o, r.hold)
	r.release(mine, fates)
	for range len(b) - len(mine) {
		fates = append(fates, errSettled)
	}
	return driver.JoinSettled(fates...)
}

// claim takes those deliveries of a batch that are held: nobody else settles them meanwhile.
func (r *consumer) claim(b driver.Batch) []*delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*delivery, 0, len(b))
	for i := range b {
		d, _ := b[i].Token.(*delivery)
		if _, taken := r.settling[d]; !taken && r.held.Has(d) {
			r.settling[d] = struct{}{}
			all = append(all, d)
		}
	}
	return all
}

// release has deliveries take no room any more. Those that could not be settled may be settled again, and are given back when the consumer closes.
func (r *consumer) release(all []*delivery, fates []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range all {
		delete(r.settling, d)
		if fates[i] != nil {
			r.held.Doubted(d)
		} else {
			r.held.Settled(d)
		}
	}
}

// end settles, with as many requests under way as the consumer may have, and gives the fate of each.
func (r *consumer) end(ctx context.Context, all []*delivery, o driver.Outcome, hold time.Duration) []error {
	fates := make([]error, len(all))
	var running sync.WaitGroup
	turns := make(chan struct{}, r.requests)
	for from := 0; from < len(all); from += maxEntries {
		to := min(from+maxEntries, len(all))
		request := func() { r.request(ctx, all[from:to], fates[from:to], o, hold) }
		if len(all) <= maxEntries {
			request()
			break
		}
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			request()
		})
	}
	running.Wait()
	return fates
}

// request settles up to ten deliveries.
func (r *consumer) request(ctx context.Context, all []*delivery, fates []error, o driver.Outcome, hold time.Duration) {
	within, cancel := r.conn.within(ctx)
	defer cancel()
	for i := range fates {
		fates[i] = errNoAnswer
	}
	var done []*string
	var failed []types.BatchResultErrorEntry
	var err error
	if o == driver.Requeue {
		done, failed, err = r.show(within, all, int32(hold/time.Second)) //gosec:disable G115 -- the option has limits
	} else {
		done, failed, err = r.remove(within, all)
	}
	if err != nil {
		err = r.conn.reason(ctx, within, err)
		for i := range fates {
			fates[i] = err
		}
		return
	}
	for _, id := range done {
		if n, ok := entry(id, len(all)); ok {
			fates[n] = nil
		}
	}
	refused(failed, fates)
}

// remove deletes messages.
func (r *consumer) remove(ctx context.Context, all []*delivery) (done []*string, failed []types.BatchResultErrorEntry, err error) {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(all))
	for i, d := range all {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: ids[i], ReceiptHandle: d.handle}
	}
	out, err := r.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(r.url), Entries: entries})
	if err != nil {
		return nil, nil, err
	}
	for i := range out.Successful {
		done = append(done, out.Successful[i].Id)
	}
	return done, out.Failed, nil
}

// show lets messages be delivered again, after so many seconds.
func (r *consumer) show(ctx context.Context, all []*delivery, seconds int32) (done []*string, failed []types.BatchResultErrorEntry, err error) {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(all))
	for i, d := range all {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: ids[i], ReceiptHandle: d.handle, VisibilityTimeout: seconds}
	}
	out, err := r.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(r.url), Entries: entries})
	if err != nil {
		return nil, nil, err
	}
	for i := range out.Successful {
		done = append(done, out.Successful[i].Id)
	}
	return done, out.Failed, nil
}

// giveBack requeues what is not settled when the consumer closes. What the service does not know any more is another's.
func (r *consumer) giveBack(ctx context.Context) error {
	all := r.in.Waiting()
	r.mu.Lock()
	for _, d := range r.held.Clear() {
		if _, taken := r.settling[d]; !taken {
			all = append(all, d)
		}
	}
	r.mu.Unlock()
	r.in.Clear()
	for _, err := range r.end(ctx, all, driver.Requeue, 0) {
		if err != nil && !errors.As(err, new(*entryError)) {
			return err
		}
	}
	return nil
}
