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

// largeError is that a message has more bytes than the service takes.
type largeError struct{ size int }

func (e *largeError) Error() string {
	return fmt.Sprintf("the message has %d bytes as it is sent, with its attributes, and may have %d", e.size, maxBytes)
}

// ErrorCode is the service's name for it.
func (*largeError) ErrorCode() string { return "BatchRequestTooLong" }

// encode makes an entry of a message.
func (p *producer) encode(m *driver.Message, o *outgoing) error {
	body, isBase64 := encodeBody(m.Body)
	attributes, size, err := encodeAttributes(m.Headers, isBase64)
	if err != nil {
		return err
	}
	if o.size = size + len(body); o.size > maxBytes {
		return &largeError{o.size}
	}
	o.entry = types.SendMessageBatchRequestEntry{MessageBody: aws.String(body), MessageAttributes: attributes}
	if p.marks != nil {
		return p.marks.mark(m, &o.entry)
	}
	delay, ok := m.Properties["delay"].(time.Duration)
	if !ok {
		delay = p.config.Options.Duration("delay")
	}
	o.entry.DelaySeconds = int32(delay / time.Second) //gosec:disable G115 -- the option has limits
	return nil
}

// marks gives the messages of a FIFO queue their groups and deduplication ids.
type marks struct {
	spread spread
	unique string // begins the ids of this producer
	last   atomic.Uint64
}

func newMarks(groups int64) *marks {
	return &marks{spread: spread{of: groups}, unique: rand.Text() + "-"}
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

// send sends a request and tells each message its own fate.
func (p *producer) send(all []outgoing) {
	entries := make([]types.SendMessageBatchRequestEntry, len(all))
	for i := range all {
		entries[i] = all[i].entry
	}
	ctx, cancel := p.conn.within(p.life)
	defer cancel()
	out, err := p.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &p.url, Entries: entries})
	if err != nil {
		err = p.conn.reason(p.life, ctx, err)
		for _, o := range all {
			o.done(o.i, err)
		}
		return
	}
	var fates [maxEntries]error
	for i := range all {
		fates[i] = errNoAnswer
	}
	for i := range out.Successful {
		if n, ok := entry(out.Successful[i].Id, len(all)); ok {
			fates[n] = nil
		}
	}
	refused(out.Failed, fates[:len(all)])
	for i, o := range all {
		o.done(o.i, fates[i])
	}
}

// entry is which of so many an answer is about.
func entry(id *string, of int) (n int, ok bool) {
	n, err := strconv.Atoi(aws.ToString(id))
	return n, err == nil && n >= 0 && n < of
}

// refused notes the errors of entries.
func refused(failed []types.BatchResultErrorEntry, fates []error) {
	for _, f := range failed {
		if n, ok := entry(f.Id, len(fates)); ok {
			fates[n] = &entryError{aws.ToString(f.Code), aws.ToString(f.Message)}
		}
	}
}

// reason is why a request failed: by the end of what life stands for, or by the option timeout, or as the client says.
func (c *conn) reason(life, within context.Context, err error) error {
	switch {
	case life.Err() != nil:
		return context.Cause(life)
	case within.Err() != nil:
		return fmt.Errorf("option \"timeout\": no answer within %v: %w", c.timeout, context.DeadlineExceeded)
	}
	return err
}
