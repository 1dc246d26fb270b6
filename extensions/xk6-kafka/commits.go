package kafka

import (
	"sort"

	"github.com/twmb/franz-go/pkg/kgo"
)

// commits know, of every partition that a member owns, which messages were delivered and which of them are settled. A
// commit is cumulative: it speaks for everything before it. So a partition's commit may only pass a message when that
// message and all delivered before it are settled.
//
// It is not safe for concurrent use.
type commits struct {
	topic      string
	partitions map[int32]*delivered
	unsettled  int // over all partitions

	last *delivered // the one asked for last: messages come and go in runs of one partition
}

// delivered holds a partition's messages from the oldest unsettled one on, in the order of their offsets.
type delivered struct {
	partition int32
	entries   []entry
	head      int   // of entries, where the oldest is
	first     int64 // the offset of the first delivered message; -1 before it
	next      int64 // the offset after the last delivered message

	ready     int    // how many messages may be committed since the partition is owned
	confirmed int    // of these, those that are committed
	marks     []mark // for the next commits, in the order of their offsets
}

// mark is a message that was marked for a commit, which speaks for as many messages since the partition is owned.
type mark struct {
	offset int64
	ready  int
}

type entry struct {
	record  *kgo.Record
	settled bool
}

func newCommits(topic string) *commits {
	return &commits{topic: topic, partitions: map[int32]*delivered{}}
}

// own begins to account for partitions; disown forgets them with all that is unsettled in them.
func (l *commits) own(partitions []int32) {
	l.disown(partitions)
	for _, p := range partitions {
		l.partitions[p] = &delivered{partition: p, first: -1}
	}
}

func (l *commits) disown(partitions []int32) {
	for _, p := range partitions {
		if d := l.partitions[p]; d != nil {
			l.unsettled -= d.unsettled()
			delete(l.partitions, p)
		}
	}
	l.last = nil
}

// of gives what is known of a partition, or nil where it is not owned.
func (l *commits) of(partition int32) *delivered {
	if l.last == nil || l.last.partition != partition {
		l.last = l.partitions[partition]
	}
	return l.last
}

// deliver notes that a message goes to the user. It is false where the message's partition has been given away
// meanwhile: then another member delivers it.
func (l *commits) deliver(r *kgo.Record) bool {
	d := l.of(r.Partition)
	if d == nil {
		return false
	}
	if r.Offset < d.next { // the broker lost messages and the client went back: what it knew is void
		l.unsettled -= d.unsettled()
		d.entries, d.head = nil, 0
	}
	if d.head > 0 && len(d.entries) == cap(d.entries) {
		n := copy(d.entries, d.entries[d.head:])
		clear(d.entries[n:])
		d.entries, d.head = d.entries[:n], 0
	}
	d.entries = append(d.entries, entry{record: r})
	if d.first < 0 || r.Offset < d.first {
		d.first = r.Offset
	}
	d.next = r.Offset + 1
	l.unsettled++
	return true
}

// settle notes that a message is done with. commit is the message up to which its partition may now be committed, nil
// where that has not changed. known is false where the partition has been given away since the delivery.
func (l *commits) settle(r *kgo.Record) (commit *kgo.Record, known bool) {
	d := l.of(r.Partition)
	if d == nil {
		return nil, false
	}
	open := d.entries[d.head:]
	i := 0
	if len(open) == 0 || open[0].record != r { // usually messages are settled in their order
		i = sort.Search(len(open), func(i int) bool { return open[i].record.Offset >= r.Offset })
	}
	if i == len(open) || open[i].record != r {
		// Settled and committed before, unless it was delivered before the partition went and came back.
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

// mark notes that the newest message that may be committed of its partition is marked for the next commit.
func (l *commits) mark(r *kgo.Record) {
	if d := l.of(r.Partition); d != nil {
		d.marks = append(d.marks, mark{r.Offset, d.ready})
	}
}

// commit notes that a partition is committed up to, and without, an offset. It returns how many messages the commit confirms.
func (l *commits) commit(partition int32, offset int64) (n int) {
	d := l.of(partition)
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

// marked returns, of each partition with messages that are marked and not confirmed, the offset whose commit confirms them.
func (l *commits) marked() map[int32]int64 {
	all := map[int32]int64{}
	for p, d := range l.partitions {
		if n := len(d.marks); n > 0 {
			all[p] = d.marks[n-1].offset + 1
		}
	}
	return all
}

// received returns the offsets that were delivered, by partition.
func (l *commits) received() map[int32]span {
	all := map[int32]span{}
	for p, d := range l.partitions {
		if d.first >= 0 {
			all[p] = span{d.first, d.next}
		}
	}
	return all
}
