package engine

import (
	"errors"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Buffer is what a consumer receives into: messages, and their stamps.
type Buffer struct {
	Messages driver.Batch
	Stamps   []Stamp
	Stamped  []bool // the message carries a stamp of this test
	HandedAt int64  // when the last of them was handed over, by [driver.Now]

	marks []mark
	next  int // the first that is not handed over
	n     int // how many there are
}

// mark is what was found in the place of a stamp.
type mark uint8

const (
	unstamped mark = iota
	corrupt
	stamped
)

// NewBuffer makes room for some messages.
func NewBuffer(size int) *Buffer {
	return &Buffer{
		Messages: make(driver.Batch, size), Stamps: make([]Stamp, size),
		Stamped: make([]bool, size), marks: make([]mark, size),
	}
}

// read takes the stamps off n messages that came.
func (in *Buffer) read(n int, run uint32) {
	in.next, in.n = 0, n
	for i := range n {
		switch err := in.Stamps[i].take(&in.Messages[i], run); {
		case err == nil:
			in.marks[i] = stamped
		case errors.Is(err, errCorrupt):
			in.marks[i] = corrupt
		default:
			in.marks[i] = unstamped
		}
		in.Stamped[i] = in.marks[i] == stamped && in.Stamps[i].Run == run
	}
}

// take moves to the start of a buffer what was not handed over of another, as far as there is room,
// and returns how much that was.
func (in *Buffer) take(from *Buffer) int {
	n := copy(in.Messages, from.Messages[from.next:from.n])
	to := from.next + n
	copy(in.Stamps, from.Stamps[from.next:to])
	copy(in.Stamped, from.Stamped[from.next:to])
	copy(in.marks, from.marks[from.next:to])
	in.next, in.n, from.next = 0, n, to
	return n
}

func (in *Buffer) id(i int) messageID {
	return messageID{in.Stamps[i].Producer, in.Stamps[i].Sequence}
}

// consecutive returns how many messages from place i on, and before to, one producer numbered one
// after the other. It is quicker to account for them together.
func (in *Buffer) consecutive(i, to int) int {
	n := 1
	for in.Stamped[i] && i+n < to && in.Stamped[i+n] && in.Stamps[i+n].Producer == in.Stamps[i].Producer &&
		in.Stamps[i+n].Sequence == in.Stamps[i].Sequence+uint64(n) {
		n++
	}
	return n
}
