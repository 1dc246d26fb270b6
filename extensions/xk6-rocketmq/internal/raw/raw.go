// Package raw has loops written by hand over the protocol's stubs, to compare the driver with.
// Every loop returns its duration.
package raw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// As is a context of calls of the client of that name.
func As(client string) context.Context {
	return metadata.AppendToOutgoingContext(
		context.Background(), "x-mq-client-id", client, "x-mq-language", "GO", "x-mq-client-version", "5.0.1",
		"x-mq-protocol", "v2",
	)
}

// Produce sends count messages, one with each request, with several requests at a time.
func Produce(channel *grpc.ClientConn, topic string, body []byte, count, requests int) (time.Duration, error) {
	client, ctx := v2.NewMessagingServiceClient(channel), As("raw")
	resource := &v2.Resource{Name: topic}
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var running sync.WaitGroup
	start := time.Now()
	for range requests {
		running.Go(func() {
			for i := next.Add(1); i <= int64(count) && failure.Load() == nil; i = next.Add(1) {
				answer, err := client.SendMessage(ctx, &v2.SendMessageRequest{Messages: []*v2.Message{{
					Topic: resource, Body: body, SystemProperties: &v2.SystemProperties{
						MessageId: fmt.Sprintf("01%032X", i), BodyEncoding: v2.Encoding_IDENTITY, MessageType: v2.MessageType_NORMAL,
						BornTimestamp: timestamppb.Now(), BornHost: "raw",
					},
				}}})
				if err == nil && answer.GetStatus().GetCode() != v2.Code_OK {
					err = errors.New(answer.GetStatus().String())
				}
				if err != nil {
					failure.Store(&err)
				}
			}
		})
	}
	running.Wait()
	took := time.Since(start)
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return took, nil
}

// Consume receives count messages in several loops, up to 32 with each request, and acknowledges
// them. The group and the client must be registered.
func Consume(
	channel *grpc.ClientConn, client, group string, queue *v2.MessageQueue, count, loops int,
) (time.Duration, error) {
	stub := v2.NewMessagingServiceClient(channel)
	ctx, end := context.WithCancel(As(client))
	defer end()
	var acked atomic.Int64
	var failure atomic.Pointer[error]
	var running sync.WaitGroup
	var took time.Duration
	start := time.Now()
	done := sync.OnceFunc(func() { took = time.Since(start); end() })
	for range loops {
		running.Go(func() {
			for ctx.Err() == nil {
				n, err := receive(ctx, stub, group, queue)
				if err != nil && ctx.Err() == nil {
					failure.Store(&err)
					done()
				}
				if acked.Add(int64(n)) >= int64(count) {
					done()
				}
			}
		})
	}
	running.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return took, nil
}

// receive receives and acknowledges once.
func receive(ctx context.Context, stub v2.MessagingServiceClient, group string, queue *v2.MessageQueue) (int, error) {
	within, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	stream, err := stub.ReceiveMessage(within, &v2.ReceiveMessageRequest{
		Group: &v2.Resource{
			Name: group,
		}, MessageQueue: queue, BatchSize: 32, InvisibleDuration: durationpb.New(30 * time.Second),
		FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"},
	})
	if err != nil {
		return 0, err
	}
	var entries []*v2.AckMessageEntry
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if m := part.GetMessage(); m != nil {
			entries = append(
				entries,
				&v2.AckMessageEntry{
					MessageId:     m.GetSystemProperties().GetMessageId(),
					ReceiptHandle: m.GetSystemProperties().GetReceiptHandle(),
				},
			)
		}
		if code := part.GetStatus().GetCode(); code > v2.Code_OK && code != v2.Code_MESSAGE_NOT_FOUND {
			return 0, errors.New(part.GetStatus().String())
		}
	}
	if len(entries) == 0 {
		return 0, nil
	}
	answer, err := stub.AckMessage(
		context.WithoutCancel(within),
		&v2.AckMessageRequest{Group: &v2.Resource{Name: group}, Topic: queue.GetTopic(), Entries: entries},
	)
	if err == nil && answer.GetStatus().GetCode() != v2.Code_OK {
		err = errors.New(answer.GetStatus().String())
	}
	return len(entries), err
}
