package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// place is where the record of a received message is. Its timestamp is the producer's, unless the topic's message.timestamp.type is
// LogAppendTime; records of long ago may have none.
func place(m *driver.Message) driver.Place {
	if r, ok := m.Token.(*kgo.Record); ok {
		return placeOf(r)
	}
	return driver.Place{}
}

func placeOf(r *kgo.Record) driver.Place {
	return driver.Place{Partition: r.Partition, Position: driver.At(uint64(r.Offset)), Timestamp: max(0, r.Timestamp.UnixNano())} //gosec:disable G115 -- a position is not negative
}

// tell fills the place of a message that was sent. Who asks for no acks is told no offset.
func tell(to *driver.Place, r *kgo.Record, acked bool) {
	if to == nil {
		return
	}
	to.Partition = r.Partition
	if acked && r.Offset >= 0 { // it has none where the broker knew the message from an earlier try
		to.Position = driver.At(uint64(r.Offset))
	}
}
