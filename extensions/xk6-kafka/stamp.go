package kafka

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// stamp is the client library's hook for decoded records, before they wait for Receive. The time is
// taken once for each batch.
type stamp struct {
	batches []atomic.Int64 // the arrival of each partition's last batch, by driver.Now
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
	} else { // the partition was added later
		note(r, driver.Now())
	}
}

// note stores the arrival of a record, by driver.Now, in its ProducerID, which the library does not
// use after it has decoded the record.
func note(r *kgo.Record, now int64) { r.ProducerID = now }

// received returns the arrival stored by note.
func received(r *kgo.Record) int64 { return r.ProducerID }
