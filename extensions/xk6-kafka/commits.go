package kafka

import (
	"sort"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ledger knows, of every partition that a member owns, which messages were delivered and which of them are settled. A
// commit is cumulative: it speaks for everything before it. So a partition's commit may only pass a message when that
// message and all delivered before it are settled.
//
// A ledger is not safe for concurrent use.
type ledger struct {
	topic      string
	partitions map[int32]*delivered
	unsettled  int // over all partitions
}

// delivered holds a partition's messages from the oldest unsettled one on, in the order of their offsets.
type delivered struct {
	entries []entry
	next    int64 // the offset after the last delivered message
}

type entry struct {
	record  *kgo.Record
	settled bool
}

func newLedger(topic string) *ledger {
	return &ledger{topic: topic, partitions: map[int32]*delivered{}}
}

// own begins to account for partitions; disown forgets them with all that is unsettled in them.
func (l *ledger) own(partitions []int32) {
	for _, p := range partitions {
		l.disown([]int32{p})
		l.partitions[p] = &delivered{}
	}
}

func (l *ledger) disown(partitions []int32) {
	for _, p := range partitions {
		if d := l.partitions[p]; d != nil {
			l.unsettled -= d.unsettled()
			delete(l.partitions, p)
		}
	}
}

// deliver notes that a message goes to the user. It is false where the message's partition has been given away
// meanwhile: then another member delivers it.
func (l *ledger) deliver(r *kgo.Record) bool {
	d := l.partitions[r.Partition]
	if d == nil {
		return false
	}
	if r.Offset < d.next { // the broker lost messages and the client went back: what it knew is void
		l.unsettled -= d.unsettled()
		d.entries = nil
	}
	d.entries = append(d.entries, entry{record: r})
	d.next = r.Offset + 1
	l.unsettled++
	return true
}

// settle notes that a message is done with. commit is the message up to which its partition may now be committed, nil
// where that has not changed. known is false where the partition has been given away since the delivery.
func (l *ledger) settle(r *kgo.Record) (commit *kgo.Record, known bool) {
	d := l.partitions[r.Partition]
	if d == nil {
		return nil, false
	}
	i := 0
	if len(d.entries) == 0 || d.entries[0].record != r { // usually messages are settled in their order
		i = sort.Search(len(d.entries), func(i int) bool { return d.entries[i].record.Offset >= r.Offset })
	}
	if i == len(d.entries) || d.entries[i].record != r {
		// Settled twice; or delivered before the partition went and came back.
		settledTwice := i == 0 && r.Offset < d.next
		return nil, settledTwice
	}
	if !d.entries[i].settled {
		d.entries[i].settled = true
		l.unsettled--
	}
	n := 0
	for n < len(d.entries) && d.entries[n].settled {
		commit = d.entries[n].record
		n++
	}
	clear(d.entries[:n]) // the messages need not live as long as the array
	d.entries = d.entries[n:]
	return commit, true
}

func (d *delivered) unsettled() (n int) {
	for _, e := range d.entries {
		if !e.settled {
			n++
		}
	}
	return n
}
