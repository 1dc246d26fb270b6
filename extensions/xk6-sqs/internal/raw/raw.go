// Package raw has loops written by hand over aws-sdk-go-v2, to compare the driver with. Every loop
// returns its duration.
package raw

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const batch = 10

// each runs loops concurrently until one of them is done or fails.
func each(loops int, loop func() error) (time.Duration, error) {
	var wg sync.WaitGroup
	errs := make(chan error, loops)
	start := time.Now()
	for range loops {
		wg.Go(func() { errs <- loop() })
	}
	wg.Wait()
	took := time.Since(start)
	for range loops {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	return took, nil
}

// Send sends count messages, ten with each request, with several requests at a time. A binary body
// is sent as base64, with an attribute.
func Send(c *sqs.Client, url string, body []byte, text bool, count, requests int) (time.Duration, error) {
	var next atomic.Int64
	return each(requests, func() error {
		for next.Add(batch) <= int64(count) {
			entries := make([]types.SendMessageBatchRequestEntry, batch)
			for i := range entries {
				e := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i))}
				if text {
					e.MessageBody = aws.String(string(body))
				} else {
					e.MessageBody = aws.String(base64.StdEncoding.EncodeToString(body))
					e.MessageAttributes = map[string]types.MessageAttributeValue{
						"Content-Transfer-Encoding": {DataType: aws.String("String"), StringValue: aws.String("base64")},
					}
				}
				entries[i] = e
			}
			out, err := c.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
			if err != nil {
				return fmt.Errorf("send: %w", err)
			}
			if len(out.Failed) > 0 {
				return fmt.Errorf("send: %s", aws.ToString(out.Failed[0].Message))
			}
		}
		return nil
	})
}

// Receive receives and deletes count messages, up to ten with each request, in several loops.
func Receive(c *sqs.Client, url string, count, loops int) (time.Duration, error) {
	var got atomic.Int64
	return each(loops, func() error {
		for got.Load() < int64(count) {
			in, err := c.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{
				QueueUrl: &url, MaxNumberOfMessages: batch, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"},
				MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
			})
			if err != nil {
				return fmt.Errorf("receive: %w", err)
			}
			if len(in.Messages) == 0 {
				continue
			}
			entries := make([]types.DeleteMessageBatchRequestEntry, len(in.Messages))
			for i := range entries {
				entries[i] = types.DeleteMessageBatchRequestEntry{
					Id:            aws.String(strconv.Itoa(i)),
					ReceiptHandle: in.Messages[i].ReceiptHandle,
				}
			}
			batch := &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries}
			if _, err := c.DeleteMessageBatch(context.Background(), batch); err != nil {
				return fmt.Errorf("delete: %w", err)
			}
			got.Add(int64(len(entries)))
		}
		return nil
	})
}
