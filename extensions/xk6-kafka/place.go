package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// place returns the place of a received message's record. Its timestamp is the producer's unless
// the topic's message.timestamp.type is LogAppendTime. Old records may have none.
func place(m *driver.Message) driver.Place {
	if r, ok := m.Token.(*kgo.Record); ok {
		return placeOf(r)
	}
	return driver.Place{}
}

func placeOf(r *kgo.Record) driver.Place {
	position := driver.At(uint64(r.Offset)) //gosec:disable G115 -- a position is not negative
	return driver.Place{Partition: r.Partition, Position: position, Timestamp: max(0, r.Timestamp.UnixNano())}
}

// fillPlace fills the place of a sent message. Without acks the offset is not known.
func fillPlace(to *driver.Place, r *kgo.Record, acked bool) {
	if to == nil {
		return
	}
	to.Partition = r.Partition
	if acked && r.Offset >= 0 { // the broker returns none for a message stored by an earlier try
		to.Position = driver.At(uint64(r.Offset))
	}
}
