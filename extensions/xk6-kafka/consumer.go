package kafka

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// reader polls records.
type reader struct {
	*client
	conn    *conn
	topic   string
	pending error // polled beside messages, and returned after them
	headers int   // the number in the last poll
}

func fetchOptionsOf(v driver.Values) []kgo.Opt {
	return []kgo.Opt{
		kgo.FetchMaxWait(v.Duration("fetchMaxWait")),
		kgo.FetchMinBytes(int32(v.Int("fetchMinBytes"))),                   //gosec:disable G115 -- at most 1 GiB
		kgo.FetchMaxBytes(int32(v.Int("fetchMaxBytes"))),                   //gosec:disable G115 -- at most 1 GiB
		kgo.FetchMaxPartitionBytes(int32(v.Int("fetchMaxPartitionBytes"))), //gosec:disable G115 -- at most 1 GiB
		kgo.BrokerMaxReadBytes(1 << 30),
	}
}

// poll waits for at most n records and appends them to records, which is empty.
func (r *reader) poll(ctx context.Context, n int, records []*kgo.Record) (_ []*kgo.Record, err error) {
	for len(records) == 0 && err == nil { // the library may return none
		records, err = r.pollOnce(ctx, n, records)
	}
	return records, err
}

func (r *reader) pollOnce(ctx context.Context, n int, records []*kgo.Record) ([]*kgo.Record, error) {
	if err := r.pending; err != nil {
		r.pending = nil
		return records, err
	}
	fetches := r.PollRecords(ctx, n)
	r.headers = 0
	fetches.EachRecord(func(record *kgo.Record) {
		records = append(records, record)
		r.headers += len(record.Headers)
	})
	var err error
	fetches.EachError(func(_ string, _ int32, e error) {
		if err == nil {
			err = e
		}
	})
	switch {
	case errors.Is(err, kgo.ErrClientClosed):
		err = driver.ErrClosed
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = ctx.Err()
	}
	if len(records) > 0 {
		r.pending, err = err, nil
	}
	return records, err
}

// message converts a record. It appends to headers, the array of many messages.
func message(m *driver.Message, r *kgo.Record, headers []driver.Header) []driver.Header {
	*m = driver.Message{
		Key: r.Key, Body: r.Value, Topic: r.Topic, Partition: r.Partition, Received: received(r), Token: r,
	}
	if len(r.Headers) > 0 {
		start := len(headers)
		for _, h := range r.Headers {
			headers = append(headers, driver.Header{Name: h.Key, Value: h.Value})
		}
		m.Headers = headers[start:len(headers):len(headers)]
	}
	return headers
}

// directConsumer reads all partitions without a group.
type directConsumer struct {
	reader
	records []*kgo.Record
	once    sync.Once
}

func (c *conn) newDirectConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	from, err := c.offsets(ctx, cfg.Topic, cfg.Start)
	if err != nil {
		return nil, err
	}
	d := &directConsumer{reader: reader{conn: c, topic: cfg.Topic}}
	// The offsets are explicit: "at the end" would be the end at the first fetch.
	d.client, err = c.newClient(append(fetchOptionsOf(cfg.Options),
		kgo.ConsumePartitions(from.KOffsets()), kgo.WithHooks(newStamp(len(from[cfg.Topic]))))...)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (d *directConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	var err error
	if d.records, err = d.poll(ctx, len(b), d.records[:0]); err != nil {
		return 0, err
	}
	headers := make([]driver.Header, 0, d.headers)
	for i, r := range d.records {
		headers = message(&b[i], r, headers)
	}
	n := len(d.records)
	clear(d.records)
	return n, nil
}

// Settle does nothing: without a group the broker stores no offsets.
func (d *directConsumer) Settle(_ context.Context, _ driver.Batch, o driver.Outcome) error {
	if o != driver.Ack {
		return errors.ErrUnsupported
	}
	return nil
}

func (d *directConsumer) Close(ctx context.Context) error {
	d.once.Do(func() { d.end(ctx) })
	return nil
}
