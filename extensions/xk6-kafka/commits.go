package kafka

import (
	"sort"

	"github.com/twmb/franz-go/pkg/kgo"
)

// commits holds the delivered and settled messages of a member's partitions. A commit is
// cumulative, so it passes a message only if that one and all delivered before it are settled. It
// is not safe for concurrent use.
type commits struct {
	partitions map[int32]*delivered
	unsettled  int // of all partitions

	last *delivered // the last result of find: messages come in runs of one partition
}

// delivered holds a partition's messages from the oldest unsettled one on, in their order.
type delivered struct {
	partition int32
	entries   []entry
	head      int   // the index of the oldest entry
	next      int64 // the offset after the last delivered message

	// Numbers of messages since the partition was assigned.
	ready     int    // that may be committed
	confirmed int    // that are committed
	marks     []mark // for the next commits, in the order of their offsets
}

// mark is a message marked for a commit, and the number of messages that this commit includes.
type mark struct {
	offset int64
	ready  int
}

type entry struct {
	record  *kgo.Record
	settled bool
}

func newCommits() *commits { return &commits{partitions: map[int32]*delivered{}} }

// own adds partitions without messages.
func (l *commits) own(partitions []int32) {
	l.disown(partitions)
	for _, p := range partitions {
		l.partitions[p] = &delivered{partition: p}
	}
}

// disown removes partitions with their unsettled messages.
func (l *commits) disown(partitions []int32) {
	for _, p := range partitions {
		if d := l.partitions[p]; d != nil {
			l.unsettled -= d.unsettled()
			delete(l.partitions, p)
		}
	}
	l.last = nil
}

// find returns a partition's messages, or nil if the member does not own it.
func (l *commits) find(partition int32) *delivered {
	if l.last == nil || l.last.partition != partition {
		l.last = l.partitions[partition]
	}
	return l.last
}

// deliver adds a message that goes to the user. It returns false if another member owns the
// message's partition now.
func (l *commits) deliver(r *kgo.Record) bool {
	d := l.find(r.Partition)
	if d == nil {
		return false
	}
	if r.Offset < d.next { // the broker lost messages and the client went back
		l.unsettled -= d.unsettled()
		d.entries, d.head = nil, 0
	}
	if d.head > 0 && len(d.entries) == cap(d.entries) {
		n := copy(d.entries, d.entries[d.head:])
		clear(d.entries[n:])
		d.entries, d.head = d.entries[:n], 0
	}
	d.entries = append(d.entries, entry{record: r})
	d.next = r.Offset + 1
	l.unsettled++
	return true
}

// settle marks a message as settled. commit is the message up to which its partition may be
// committed now, or nil if that did not change. owned is false if the partition was revoked since
// the delivery.
func (l *commits) settle(r *kgo.Record) (commit *kgo.Record, owned bool) {
	d := l.find(r.Partition)
	if d == nil {
		return nil, false
	}
	open := d.entries[d.head:]
	i := 0
	if len(open) == 0 || open[0].record != r { // usually messages are settled in their order
		i = sort.Search(len(open), func(i int) bool { return open[i].record.Offset >= r.Offset })
	}
	if i == len(open) || open[i].record != r {
		// Settled and committed before, or delivered before the partition was revoked and came
		// back.
		return nil, r.Offset < d.next && (len(open) == 0 || r.Offset < open[0].record.Offset)
	}
	if !open[i].settled {
		open[i].settled = true
		l.unsettled--
	}
	for len(open) > 0 && open[0].settled {
		commit, open[0].record = open[0].record, nil // the message need not live as long as the array
		open = open[1:]
		d.head++
		d.ready++
	}
	if len(open) == 0 {
		d.entries, d.head = d.entries[:0], 0
	}
	return commit, true
}

func (d *delivered) unsettled() (n int) {
	for _, e := range d.entries[d.head:] {
		if !e.settled {
			n++
		}
	}
	return n
}

// mark marks the newest message of its partition that may be committed.
func (l *commits) mark(r *kgo.Record) {
	if d := l.find(r.Partition); d != nil {
		d.marks = append(d.marks, mark{r.Offset, d.ready})
	}
}

// commit returns how many messages a commit up to, and without, an offset confirms.
func (l *commits) commit(partition int32, offset int64) (n int) {
	d := l.find(partition)
	if d == nil {
		return 0
	}
	done := 0
	for done < len(d.marks) && d.marks[done].offset < offset {
		n = d.marks[done].ready - d.confirmed
		done++
	}
	d.confirmed += n
	d.marks = append(d.marks[:0], d.marks[done:]...)
	return n
}

// marked returns, by partition, the offset whose commit confirms the marked messages.
func (l *commits) marked() map[int32]int64 {
	all := map[int32]int64{}
	for p, d := range l.partitions {
		if n := len(d.marks); n > 0 {
			all[p] = d.marks[n-1].offset + 1
		}
	}
	return all
}
