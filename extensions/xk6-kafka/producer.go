package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer sends to one topic or partition.
type producer struct {
	*client
	topic     string
	partition int32
	acked     bool // the broker is asked for an answer
	failure   lastFailure
	largest   int64 // batch, in bytes

	mu          sync.RWMutex // after closed is set, nothing is added to outstanding
	closed      bool
	outstanding sync.WaitGroup
	records     sync.Pool // of *record
}

// record is a message on its way. Records are reused, so that sending allocates nothing per
// message.
type record struct {
	kgo.Record
	p       *producer
	i       int
	done    driver.Done
	place   *driver.Place
	promise func(*kgo.Record, error)
}

func (c *conn) NewProducer(ctx context.Context, cfg driver.ProducerConfig) (driver.Producer, error) {
	n, err := c.partitions(ctx, cfg.Topic)
	if err != nil {
		return nil, err
	}
	p := &producer{
		topic: cfg.Topic, partition: partitionOf(cfg.Options.Int("partition")),
		largest: cfg.Options.Int("batchMaxBytes"), acked: cfg.Options.String("acks") != "none",
	}
	if want := cfg.Options.Int("partition"); want >= int64(n) {
		return nil, &driver.OptionError{
			Name: "partition",
			Err:  fmt.Errorf("%d: topic %s has partitions 0 to %d", want, cfg.Topic, n-1),
		}
	}
	p.records.New = func() any {
		r := &record{p: p}
		r.promise = r.finished
		return r
	}
	p.client, err = c.newClient(p.options(cfg.Options)...)
	if err != nil {
		return nil, err
	}
	if err := p.warm(ctx); err != nil {
		p.drop()
		return nil, err
	}
	return p, nil
}

func (p *producer) options(v driver.Values) []kgo.Opt {
	timeout := v.Duration("deliveryTimeout")
	options := []kgo.Opt{
		kgo.DefaultProduceTopic(p.topic),
		kgo.ProducerLinger(v.Duration("linger")),
		kgo.ProducerBatchMaxBytes(int32(v.Int("batchMaxBytes"))), //gosec:disable G115 -- at most 1 GiB
		kgo.BrokerMaxWriteBytes(1 << 30),
		kgo.RecordRetries(int(v.Int("retries"))),
		kgo.UnknownTopicRetries(int(min(v.Int("retries"), 4))), // 4 is the library's default
		kgo.RecordDeliveryTimeout(timeout),
		kgo.ProduceRequestTimeout(min(timeout, 10*time.Second)), // for the replicas, and then for the answer:
		kgo.RequestTimeoutOverhead(min(timeout, 10*time.Second)),
		kgo.MaxBufferedRecords(math.MaxInt32), // the engine has a window
		kgo.WithHooks(&p.failure),
	}
	if v.Bool("idempotence") && v.String("acks") == "all" {
		// So that a message whose request was cut off can fail while the broker is away.
		options = append(options, kgo.AllowIdempotentProduceCancellation())
	} else {
		inFlight := kgo.MaxProduceRequestsInflightPerBroker(int(v.Int("inFlight")))
		options = append(options, kgo.DisableIdempotentWrite(), inFlight)
	}
	return append(options,
		kgo.RequiredAcks(acks[v.String("acks")]),
		kgo.ProducerBatchCompression(codecs[v.String("compression")]),
		kgo.RecordPartitioner(newPartitioner(v.String("partitioner"))),
	)
}

var acks = map[string]kgo.Acks{"all": kgo.AllISRAcks(), "leader": kgo.LeaderAck(), "none": kgo.NoAck()}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// warm does the client's work before a first message: find the partitions, connect to their leaders
// and, with idempotence, get a producer id. The library finds partitions only for a message, so
// warm produces one that is too large to be sent.
func (p *producer) warm(ctx context.Context) error {
	tooLarge := kgo.Record{Topic: p.topic, Partition: p.partition, Value: make([]byte, p.largest+1)}
	if err := p.ProduceSync(ctx, &tooLarge).FirstErr(); err != nil && !errors.Is(err, kerr.MessageTooLarge) {
		return p.failure.explain(err)
	}
	if err := p.EnsureProduceConnectionIsOpen(ctx); err != nil {
		return err
	}
	if plain, _ := p.OptValue(kgo.DisableIdempotentWrite).(bool); plain {
		return nil
	}
	_, _, err := p.ProducerID(ctx)
	return err
}

func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	p.mu.RLock()
	if p.closed {
		p.mu.RUnlock()
		for i := range b {
			done(i, driver.ErrClosed)
		}
		return
	}
	p.outstanding.Add(len(b))
	p.mu.RUnlock()

	for i := range b {
		r, _ := p.records.Get().(*record)
		r.i, r.done, r.place = i, done, b[i].Place
		r.Key, r.Value, r.Partition = b[i].Key, b[i].Body, p.partition
		if chosen, ok := b[i].Properties["partition"].(int64); ok {
			r.Partition = partitionOf(chosen)
		}
		for _, h := range b[i].Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		// Not the caller's context: its end must not recall the message. Produce does not block.
		p.Produce(context.Background(), &r.Record, r.promise)
	}
}

// finished is the client's promise for a record.
func (r *record) finished(_ *kgo.Record, err error) {
	i, done, p := r.i, r.done, r.p
	if err == nil {
		fillPlace(r.place, &r.Record, p.acked)
	}
	clear(r.Headers)
	r.Record, r.done, r.place = kgo.Record{Headers: r.Headers[:0]}, nil, nil
	p.records.Put(r)
	if err != nil {
		err = p.explain(err)
	}
	done(i, err)
	p.outstanding.Done()
}

func (p *producer) explain(err error) error {
	// The library uses the broker's error for a message that it did not send, without the size on
	// the wire.
	if errors.Is(err, kerr.MessageTooLarge) && !strings.Contains(err.Error(), ", compressed_bytes=") {
		return &tooLargeError{p.largest, err}
	}
	if strings.HasPrefix(err.Error(), noPartition) {
		return &driver.OptionError{Name: "partition", Err: err}
	}
	return p.failure.explain(err)
}

func (p *producer) Close(ctx context.Context) error {
	p.mu.Lock()
	already := p.closed
	p.closed = true
	p.mu.Unlock()
	if already {
		return nil
	}
	err := p.Flush(ctx)
	p.end(ctx) // fails the rest
	p.outstanding.Wait()
	return err
}
