package kafka

import (
	"math"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partitionOf is the option partition as the client library has it. What is beyond its range is in no topic.
func partitionOf(option int64) int32 { return int32(min(option, math.MaxInt32)) } //gosec:disable G115 -- -1 at least

// partitioner sends a record that has a partition there, and leaves it to another one where the rest go.
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

// ForTopic keeps to what the library asks the other one for.
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
