// Package raw has loops written by hand with franz-go, which move messages as fast as it can: the
// measure for the drivers. Every loop returns the time for its messages.
package raw

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Producer is a client whose messages are confirmed by the partition's leader, with up to window
// unconfirmed messages.
func Producer(hosts []string, topic string, window int) (*kgo.Client, error) {
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(hosts...), kgo.DefaultProduceTopic(topic),
		kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(window),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return cl, nil
}

// Produce sends count messages and returns when all are confirmed. It waits while the client's
// window is full.
func Produce(cl *kgo.Client, body []byte, count int) (time.Duration, error) {
	ctx := context.Background()
	var unconfirmed sync.WaitGroup
	var failure atomic.Pointer[error]
	unconfirmed.Add(count)
	start := time.Now()
	for range count {
		cl.Produce(ctx, &kgo.Record{Value: body}, func(_ *kgo.Record, err error) {
			if err != nil {
				failure.Store(&err)
			}
			unconfirmed.Done()
		})
	}
	unconfirmed.Wait()
	took := time.Since(start)
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return took, nil
}

// Consume receives count messages as the only member of a group, and marks them for the next
// commit. The clock starts when the group has assigned the partitions.
func Consume(hosts []string, topic, group string, count, batch int) (time.Duration, error) {
	assigned := make(chan struct{})
	var once sync.Once
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(hosts...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(
			func(context.Context, *kgo.Client, map[string][]int32) { once.Do(func() { close(assigned) }) },
		),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(250*time.Millisecond),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.BrokerMaxReadBytes(1<<30),
	)
	if err != nil {
		return 0, fmt.Errorf("client: %w", err)
	}
	defer cl.Close()
	<-assigned
	ctx := context.Background()
	start := time.Now()
	for got := 0; got < count; {
		fetches := cl.PollRecords(ctx, batch)
		if err := fetches.Err(); err != nil {
			return 0, fmt.Errorf("poll: %w", err)
		}
		records := fetches.Records()
		got += len(records)
		cl.MarkCommitRecords(records...)
	}
	return time.Since(start), nil
}

// Share receives count messages as the only member of a share group and accepts each. The clock
// starts with its first message.
func Share(hosts []string, topic, group string, count, batch int) (time.Duration, error) {
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(hosts...),
		kgo.ShareGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ShareMaxRecords(int32(batch)), //gosec:disable G115 -- a few hundred
		kgo.ShareMaxRecordsStrict(),
		kgo.FetchMaxWait(100*time.Millisecond),
	)
	if err != nil {
		return 0, fmt.Errorf("client: %w", err)
	}
	defer cl.Close()
	ctx := context.Background()
	cl.MarkAcks(kgo.AckAccept, cl.PollRecords(ctx, 1).Records()...)
	start := time.Now()
	for got := 1; got < count; {
		fetches := cl.PollRecords(ctx, batch)
		if err := fetches.Err(); err != nil {
			return 0, fmt.Errorf("poll: %w", err)
		}
		records := fetches.Records()
		got += len(records)
		cl.MarkAcks(kgo.AckAccept, records...)
	}
	return time.Since(start), nil
}
