package driver

import (
	"cmp"
	"strconv"
)

// Place is where and when a broker stored a message.
type Place struct {
	// Partition is the part of the topic; 0 without Features.Partitions.
	Partition int32
	// Position is the position in the partition; none if not known.
	Position Position
	// Timestamp is the time of storing in ns since the Unix epoch, by the clock that set it; 0 if
	// not known. Only of received messages.
	Timestamp int64
}

// Position is a message's position in its partition, or in a topic without partitions. The zero
// value is none. A later message of a partition has a greater position.
type Position struct {
	Form   Form
	Number uint64 // the offset or sequence number, or the first part of the identifier
	Sub    uint64 // the second part of an identifier
	Item   uint64 // index of the message in an entry of several messages
}

// Form is the form of positions.
type Form uint8

// The forms.
const (
	NoPosition Form = iota
	Offset          // one number, such as an offset or a sequence number
	Identifier      // two numbers, such as the id of an entry of a Redis stream
)

func (f Form) String() string { return [...]string{"none", "offset", "id"}[f] }

// At returns the position at an offset or a sequence number.
func At(number uint64) Position { return Position{Form: Offset, Number: number} }

// Compare returns -1, 0 or 1 if p is before, at or after q, a position of the same partition.
func (p Position) Compare(q Position) int {
	numbers := cmp.Or(cmp.Compare(p.Number, q.Number), cmp.Compare(p.Sub, q.Sub), cmp.Compare(p.Item, q.Item))
	return cmp.Or(cmp.Compare(p.Form, q.Form), numbers)
}

// String returns the position in the form of the broker's own tools; "" for none.
func (p Position) String() string {
	text := strconv.FormatUint(p.Number, 10)
	switch {
	case p.Form == NoPosition:
		return ""
	case p.Form == Identifier:
		text += "-" + strconv.FormatUint(p.Sub, 10)
	}
	if p.Item > 0 {
		text += "-" + strconv.FormatUint(p.Item, 10)
	}
	return text
}
