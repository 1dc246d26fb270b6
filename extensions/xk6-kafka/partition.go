package kafka

import (
	"math"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partitionOf converts the option partition for the client library. No topic has a partition beyond
// its range.
func partitionOf(option int64) int32 { return int32(min(option, math.MaxInt32)) } //gosec:disable G115 -- -1 at least

// partitioner sends a record with a partition there, and leaves the others to the embedded one.
type partitioner struct{ kgo.Partitioner }

func newPartitioner(name string) kgo.Partitioner {
	switch name {
	case "uniform":
		return partitioner{kgo.UniformBytesPartitioner(64<<10, true, true, nil)}
	case "roundrobin":
		return partitioner{kgo.RoundRobinPartitioner()}
	default:
		return partitioner{kgo.StickyKeyPartitioner(nil)}
	}
}

// ForTopic keeps the optional interfaces of the embedded partitioner.
func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	other := p.Partitioner.ForTopic(topic)
	switch extended := other.(type) {
	case kgo.TopicBackupPartitioner:
		return byBackup{chosen{other}, extended}
	case kgo.TopicPartitionerOnNewBatch:
		return byBatch{chosen{other}, extended}
	}
	return chosen{other}
}

type chosen struct{ kgo.TopicPartitioner }

func (c chosen) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || c.TopicPartitioner.RequiresConsistency(r)
}

func (c chosen) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return c.TopicPartitioner.Partition(r, n)
}

type byBatch struct {
	chosen
	kgo.TopicPartitionerOnNewBatch
}

type byBackup struct {
	chosen
	other kgo.TopicBackupPartitioner
}

func (b byBackup) PartitionByBackup(r *kgo.Record, n int, backup kgo.TopicBackupIter) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return b.other.PartitionByBackup(r, n, backup)
}
