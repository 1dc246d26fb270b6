package sqs

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// largeError reports a message that is larger than the service accepts.
type largeError struct{ size int }

func (e *largeError) Error() string {
	return fmt.Sprintf("the message has %d bytes with its attributes, more than %d", e.size, maxBytes)
}

// ErrorCode returns the service's name for the error.
func (*largeError) ErrorCode() string { return "BatchRequestTooLong" }

// encode returns the entry of a message.
func (p *producer) encode(m *driver.Message) (o message, err error) {
	body, isBase64 := encodeBody(m.Body)
	attributes, size, err := encodeAttributes(m.Headers, isBase64)
	if err != nil {
		return o, err
	}
	if o.size = size + len(body); o.size > maxBytes {
		return o, &largeError{o.size}
	}
	o.MessageBody, o.MessageAttributes = aws.String(body), attributes
	if p.marks != nil {
		return o, p.marks.mark(m, &o.SendMessageBatchRequestEntry)
	}
	delay, ok := m.Properties["delay"].(time.Duration)
	if !ok {
		delay = p.config.Options.Duration("delay")
	}
	o.DelaySeconds = int32(delay / time.Second) //gosec:disable G115 -- the option has limits
	return o, nil
}

// marks sets the groups and deduplication ids of the messages of a FIFO queue.
type marks struct {
	spread spread
	unique string // begins the ids of this producer
	last   atomic.Uint64
}

func newMarks(groups int64) *marks {
	return &marks{spread: spread{groups: groups}, unique: rand.Text() + "-"}
}

func (k *marks) mark(m *driver.Message, e *types.SendMessageBatchRequestEntry) error {
	group, err := groupOf(m.Key)
	if err != nil {
		return err
	}
	if group == "" {
		group = k.spread.group()
	}
	id := cmp.Or(m.Properties.String("deduplicationId"), k.unique+strconv.FormatUint(k.last.Add(1), 36))
	e.MessageGroupId, e.MessageDeduplicationId = &group, &id
	return nil
}

// send sends a request. Each message has its own result.
func (p *producer) send(life context.Context, all []outgoing) {
	entries := make([]types.SendMessageBatchRequestEntry, len(all))
	for i := range all {
		entries[i] = all[i].Message.SendMessageBatchRequestEntry
		entries[i].Id = ids[i]
	}
	errs := make([]error, len(all))
	ctx, cancel := p.conn.within(life)
	defer cancel()
	out, err := p.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &p.url, Entries: entries})
	if err == nil {
		err = errNoAnswer
	} else {
		err = p.conn.reason(life, ctx, err)
		out = &sqs.SendMessageBatchOutput{}
	}
	for i := range errs {
		errs[i] = err
	}
	for i := range out.Successful {
		if n, ok := entry(out.Successful[i].Id, len(all)); ok {
			errs[n] = nil
		}
	}
	refused(out.Failed, errs)
	for i, item := range all {
		item.Done(errs[i])
	}
}

// entry returns the index of the entry that an answer is about.
func entry(id *string, entries int) (n int, ok bool) {
	n, err := strconv.Atoi(aws.ToString(id))
	return n, err == nil && n >= 0 && n < entries
}

// refused sets the errors of refused entries.
func refused(failed []types.BatchResultErrorEntry, errs []error) {
	for _, f := range failed {
		if n, ok := entry(f.Id, len(errs)); ok {
			errs[n] = &entryError{aws.ToString(f.Code), aws.ToString(f.Message)}
		}
	}
}

// reason returns the cause of the end of life, or that the option timeout has passed, or else err.
func (c *conn) reason(life, within context.Context, err error) error {
	switch {
	case life.Err() != nil:
		return context.Cause(life)
	case within.Err() != nil:
		return fmt.Errorf("option \"timeout\": no answer within %v: %w", c.timeout, context.DeadlineExceeded)
	}
	return err
}
