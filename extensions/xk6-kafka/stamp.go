package kafka

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// stamp is the first line of this driver that sees a record: a hook of the client library that runs when records have
// come and been decoded, before they wait for Receive. A batch takes the time once and each of its records gets it.
type stamp struct {
	batches []atomic.Int64 // when the last batch of each partition came, by driver.Now
}

func newStamp(partitions int) *stamp { return &stamp{make([]atomic.Int64, partitions)} }

func (s *stamp) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, partition int32, _ kgo.FetchBatchMetrics) {
	if int(partition) < len(s.batches) {
		s.batches[partition].Store(driver.Now())
	}
}

func (s *stamp) OnFetchRecordBuffered(r *kgo.Record) {
	if int(r.Partition) < len(s.batches) {
		note(r, s.batches[r.Partition].Load())
	} else { // of a partition that came later
		note(r, driver.Now())
	}
}

// note keeps when a record came, by driver.Now, where the record has the number of its producer: the library is through with that when
// it has decoded the record, and nobody else reads it.
func note(r *kgo.Record, now int64) { r.ProducerID = now }

// received is what note has kept.
func received(r *kgo.Record) int64 { return r.ProducerID }
