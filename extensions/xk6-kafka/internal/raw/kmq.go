package raw

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// KMQ receives count messages as the only member of a group by KMQ's protocol. A second client
// reads the markers. The topic of markers must exist, with as many partitions. The clock starts
// when the group has assigned the partitions.
func KMQ(hosts []string, topic, markers, group string, count, batch int) (time.Duration, error) {
	assigned := make(chan struct{})
	var once sync.Once
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(hosts...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(
			func(context.Context, *kgo.Client, map[string][]int32) { once.Do(func() { close(assigned) }) },
		),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.BrokerMaxReadBytes(1<<30),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(count),
	)
	if err != nil {
		return 0, fmt.Errorf("client: %w", err)
	}
	defer cl.Close()
	stop, err := track(hosts, markers, group+"-tracker")
	if err != nil {
		return 0, err
	}
	defer stop()
	<-assigned
	ctx := context.Background()
	start := time.Now()
	for got := 0; got < count; {
		fetches := cl.PollRecords(ctx, batch)
		if err := fetches.Err(); err != nil {
			return 0, fmt.Errorf("poll: %w", err)
		}
		records := fetches.Records()
		started, ended := make([]*kgo.Record, len(records)), make([]*kgo.Record, len(records))
		for i, r := range records {
			key := binary.BigEndian.AppendUint32(nil, uint32(r.Partition)) //gosec:disable G115 -- not negative
			key = binary.BigEndian.AppendUint64(key, uint64(r.Offset))     //gosec:disable G115 -- not negative
			started[i] = &kgo.Record{
				Topic:     markers,
				Partition: r.Partition,
				Key:       key,
				Value:     []byte{1, 0, 0, 0, 0, 0, 0, 117, 48},
			}
			ended[i] = &kgo.Record{Topic: markers, Partition: r.Partition, Key: key, Value: []byte{0}}
		}
		if err := cl.ProduceSync(ctx, started...).FirstErr(); err != nil {
			return 0, fmt.Errorf("start markers: %w", err)
		}
		if err := cl.CommitRecords(ctx, records...); err != nil {
			return 0, fmt.Errorf("commit: %w", err)
		}
		for _, r := range ended {
			cl.Produce(ctx, r, nil)
		}
		got += len(records)
	}
	return time.Since(start), nil
}

// track reads markers and keeps the begun messages until it is stopped.
func track(hosts []string, markers, group string) (stop func(), err error) {
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(hosts...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(markers), kgo.BrokerMaxReadBytes(1<<30),
	)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		begun := map[string]time.Time{}
		for ctx.Err() == nil {
			cl.PollRecords(ctx, 10_000).EachRecord(func(r *kgo.Record) {
				if r.Value[0] == 1 {
					begun[string(r.Key)] = r.Timestamp
				} else {
					delete(begun, string(r.Key))
				}
			})
		}
	})
	return func() { cancel(); running.Wait(); cl.Close() }, nil
}
