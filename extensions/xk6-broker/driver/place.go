package driver

import (
	"cmp"
	"strconv"
)

// Place is where a broker has put a message, and when.
type Place struct {
	// Partition is the part of the topic, where Features.Partitions; else 0.
	Partition int32
	// Position is where in there it is; none where the broker does not tell of this message.
	Position Position
	// Timestamp is when the broker says that the message is from, in ns since the Unix epoch by the clock of whoever set it; 0 where it does
	// not tell. Only of what is received.
	Timestamp int64
}

// Position is where a broker has a message: in the order of a partition, or of a topic that has none. The zero value is none.
type Position struct {
	Form   Form
	Number uint64 // the offset or sequence number, or the first part of the identifier
	Sub    uint64 // the second part of an identifier
	Item   uint64 // which message it is of those that the broker keeps together as one entry, counted from 0
}

// Form is what positions look like.
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

// Compare is negative where p is before q, which is one of the same partition, and 0 where they are the same.
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
