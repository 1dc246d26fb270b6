package kafka

import (
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// model is the obvious way to say what commits must: it looks at everything each time.
type model struct {
	delivered map[int32][]*kgo.Record
	settled   map[*kgo.Record]bool
}

// prefix is the last message of a partition up to which all are settled.
func (m *model) prefix(partition int32) (last *kgo.Record) {
	for _, r := range m.delivered[partition] {
		if !m.settled[r] {
			break
		}
		last = r
	}
	return last
}

func (m *model) unsettled() (n int) {
	for _, records := range m.delivered {
		for _, r := range records {
			if !m.settled[r] {
				n++
			}
		}
	}
	return n
}

func TestCommitsOnlyWhatIsSettledWithAllBeforeIt(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		l := newCommits()
		l.own([]int32{0, 1, 2})
		m := &model{map[int32][]*kgo.Record{}, map[*kgo.Record]bool{}}
		committed := map[int32]*kgo.Record{}
		offsets := map[int32]int64{}
		var open []*kgo.Record
		for range 400 {
			if random.IntN(2) == 0 || len(open) == 0 {
				p := random.Int32N(3)
				offsets[p] += 1 + random.Int64N(3)/2 // with gaps, as compaction leaves them
				r := &kgo.Record{Partition: p, Offset: offsets[p]}
				if !l.deliver(r) {
					t.Fatal("a partition that is owned is unknown")
				}
				m.delivered[p] = append(m.delivered[p], r)
				open = append(open, r)
				continue
			}
			i := random.IntN(min(len(open), 1+random.IntN(8))) // often the oldest
			r := open[i]
			if random.IntN(10) > 0 { // else it will be settled again
				open = append(open[:i], open[i+1:]...)
			}
			m.settled[r] = true
			commit, known := l.settle(r)
			if !known {
				t.Fatalf("seed %d: a message that was delivered is unknown", seed)
			}
			if commit != nil {
				committed[r.Partition] = commit
			}
			if committed[r.Partition] != m.prefix(r.Partition) {
				t.Fatalf("seed %d: committed %+v, want %+v", seed, committed[r.Partition], m.prefix(r.Partition))
			}
			if l.unsettled != m.unsettled() {
				t.Fatalf("seed %d: %d unsettled, want %d", seed, l.unsettled, m.unsettled())
			}
		}
	}
}

func TestCommitsForgetWhatIsGivenAway(t *testing.T) {
	l := newCommits()
	l.own([]int32{0, 1})
	before := &kgo.Record{Partition: 0, Offset: 5}
	l.deliver(before)
	l.deliver(&kgo.Record{Partition: 1, Offset: 5})
	l.disown([]int32{0})
	if l.unsettled != 1 {
		t.Errorf("%d unsettled after one of two partitions went, want 1", l.unsettled)
	}
	if _, known := l.settle(before); known {
		t.Error("a message of a partition that went can be settled")
	}
	if l.deliver(&kgo.Record{Partition: 0, Offset: 6}) {
		t.Error("a message of a partition that went is delivered")
	}
	l.own([]int32{0})
	l.deliver(&kgo.Record{Partition: 0, Offset: 5})
	if _, known := l.settle(before); known {
		t.Error("a message can be settled that was delivered before its partition went and came back")
	}
}

func TestCommitsFollowTheClientBack(t *testing.T) {
	l := newCommits()
	l.own([]int32{0})
	for offset := range int64(10) {
		l.deliver(&kgo.Record{Offset: offset})
	}
	again := &kgo.Record{Offset: 3}
	l.deliver(again)
	if commit, known := l.settle(again); commit != again || !known || l.unsettled != 0 {
		t.Errorf("after going back to offset 3 it is committed up to %+v, %v, with %d unsettled", commit, known, l.unsettled)
	}
}

func TestCommitsKeepNoMoreThanIsOpen(t *testing.T) {
	l := newCommits()
	l.own([]int32{0})
	var window []*kgo.Record
	for offset := range int64(100_000) {
		r := &kgo.Record{Offset: offset}
		l.deliver(r)
		if window = append(window, r); len(window) > 100 {
			l.settle(window[0])
			window = window[1:]
		}
	}
	if n := cap(l.partitions[0].entries); n > 1000 {
		t.Errorf("room for %d messages is kept, with 100 open at most", n)
	}
}
