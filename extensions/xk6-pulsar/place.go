package pulsar

import (
	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// place returns the place of a received message. Its timestamp is the broker's if brokers add
// theirs, else the producer's publish time.
func place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	p := placeOf(d.ID())
	at := d.PublishTime()
	if stored := d.BrokerPublishTime(); stored != nil {
		at = *stored
	}
	p.Timestamp = max(0, at.UnixNano())
	return p
}

// placeOf converts the identifier of a message: ledger, entry and index in a batch.
//
//gosec:disable G115 -- a position is not negative
func placeOf(id pulsar.MessageID) driver.Place {
	position := driver.Position{
		Form: driver.Identifier, Number: uint64(id.LedgerID()), Sub: uint64(id.EntryID()),
		Item: uint64(max(0, id.BatchIdx())),
	}
	return driver.Place{Partition: max(0, id.PartitionIdx()), Position: position}
}
