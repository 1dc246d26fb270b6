package driver

import (
	"cmp"
	"strconv"
)

// Place is where a broker has put a message, and when.
type Place struct {
	// Partition is the part of the topic, where Features.Partitions; else 0.
	Partition int32
	// Position is the position in the partition; none if not known.
	Position Position
	// Timestamp is the message's time at the broker in ns since the Unix epoch, by the clock that
	// set it; 0 if not known. Only of received messages.
	Timestamp int64
}

// Position is a message's position in its partition, or in a topic without partitions. The zero
// value is none.
type Position struct {
	Form   Form
	Number uint64 // the offset or sequence number, or the first part of the identifier
	Sub    uint64 // the second part of an identifier
	Item   uint64 // index of the message in an entry of several messages
}

// Form is the form of positions.
type Form uint8

// Forms. A later message of a partition has a greater position, be it a number or an identifier.
const (
	NoPosition Form = iota
	Offset          // one number, such as an offset or a sequence number
	Identifier      // two numbers, such as the id of an entry of a Redis stream
)

func (f Form) String() string { return [...]string{"none", "offset", "id"}[f] }

// At is the position at an offset or a sequence number.
func At(number uint64) Position { return Position{Form: Offset, Number: number} }

// Compare is negative where p is before q, which is one of the same partition, and 0 where they are
// the same.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Form, q.Form), cmp.Compare(p.Number, q.Number), cmp.Compare(p.Sub, q.Sub), cmp.Compare(p.Item, q.Item))
}

// String is the position as the broker's own tools write it, and "" for none.
func (p Position) String() string {
	switch number := strconv.FormatUint(p.Number, 10); p.Form {
	case Offset:
		return number
	case Identifier:
		text := number + "-" + strconv.FormatUint(p.Sub, 10)
		if p.Item > 0 {
			text += "-" + strconv.FormatUint(p.Item, 10)
		}
		return text
	default:
		return ""
	}
}
