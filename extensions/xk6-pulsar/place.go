package pulsar

import (
	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// place is where a received message is. Its timestamp is the broker's where brokers note that in entries, else the producer's publish time.
func place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	p := positioned(d.ID())
	at := d.PublishTime()
	if stored := d.BrokerPublishTime(); stored != nil {
		at = *stored
	}
	p.Timestamp = max(0, at.UnixNano())
	return p
}

// positioned is what the identifier of a message says: ledger, entry and, in a batch, which message of it.
func positioned(id pulsar.MessageID) driver.Place {
	return driver.Place{
		Partition: max(0, id.PartitionIdx()),
		Position:  driver.Position{Form: driver.Identifier, Number: uint64(id.LedgerID()), Sub: uint64(id.EntryID()), Item: uint64(max(0, id.BatchIdx()))}, //gosec:disable G115 -- a position is not negative
	}
}
