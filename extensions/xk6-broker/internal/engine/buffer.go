package engine

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// Buffer holds the messages that a consumer receives, and their stamps.
type Buffer struct {
	Messages driver.Batch
	Stamps   []Stamp
	Stamped  []bool // the message carries a stamp of this test
	HandedAt int64  // when the last of them was handed over, by [driver.Now]

	marks []mark
	next  int // the first that is not handed over
	n     int // how many there are
}

// NewBuffer makes room for some messages.
func NewBuffer(size int) *Buffer {
	return &Buffer{
		Messages: make(driver.Batch, size), Stamps: make([]Stamp, size),
		Stamped: make([]bool, size), marks: make([]mark, size),
	}
}

// read takes the stamps off n received messages.
func (in *Buffer) read(n int, run uint32) {
	in.next, in.n = 0, n
	for i := range n {
		in.marks[i] = in.Stamps[i].take(&in.Messages[i], run)
		in.Stamped[i] = in.marks[i] == stamped && in.Stamps[i].Run == run
	}
}

// take moves messages that were not handed over from another buffer to the start of this one, as
// far as there is room, and returns their number.
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
