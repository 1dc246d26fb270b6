package nats

import (
	"math"

	"github.com/nats-io/nats.go"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Positions in a message's reply subject, counted as by [fromReply].
const (
	tokenStreamSequence = 5
	tokenTime           = 7 // in ns since the Unix epoch
)

// streamPlace returns the sequence number and the time of a message in its stream.
func streamPlace(m *driver.Message) driver.Place {
	msg, ok := m.Token.(*nats.Msg)
	if !ok {
		return driver.Place{}
	}
	return driver.Place{
		Position: inStream(
			fromReply(msg.Reply, tokenStreamSequence),
		), Timestamp: int64(min(fromReply(msg.Reply, tokenTime), math.MaxInt64)),
	}
}

// inStream is the position of a sequence number, which count from 1.
func inStream(sequence uint64) driver.Position {
	if sequence == 0 {
		return driver.Position{}
	}
	return driver.At(sequence)
}
