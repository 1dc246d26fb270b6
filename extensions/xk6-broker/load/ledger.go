package load

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

// Mark is that a producer had handed out Next numbers, from when this was seen first to when it was seen last, in ns since the Unix epoch.
type Mark struct {
	At, Seen int64
	Next     uint64
}

// Ledger is what one process of a test knows of its messages, one by one: with those of the other processes it gives the exact account.
type Ledger struct {
	Version  int
	Run      uint32
	Instance uint32
	Ended    int64 // when the account was closed, ns since the Unix epoch
	Topics   []TopicLedger
}

// TopicLedger is the ledger of one topic.
type TopicLedger struct {
	Broker, Driver, Topic string
	Producers             []track.ProducerLedger
	Index                 map[uint64][]Mark // by producer, ascending
	Groups                []GroupLedger
}

// GroupLedger is what a group received in this process.
type GroupLedger struct {
	track.GroupLedger
	Subscriber    bool  // it gets every message by itself, in no group
	Kept          bool  // the broker keeps messages for it while nobody is there
	Earliest      bool  // it expects everything, whatever was sent before
	Ready, Closed int64 // ns since the Unix epoch; Closed is 0 where somebody stayed to the end
	Asked         int64 // when the broker said what it holds, ns since the Unix epoch; 0 where it did not
	Backlog       int64 // what it said
}

// born notes that a producer begins.
func (t *Topic) born(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index != nil {
		t.index[id] = append(t.index[id], Mark{At: driver.Now(), Seen: driver.Now()})
	}
}

// mark notes how far each producer has come, where it has moved. The topic's lock is held.
func (t *Topic) mark(now int64) {
	if t.index == nil {
		return
	}
	for id, next := range t.track.Numbered() {
		marks := t.index[id]
		if last := len(marks) - 1; last >= 0 && marks[last].Next == next {
			marks[last].Seen = now
		} else {
			t.index[id] = append(marks, Mark{now, now, next})
		}
	}
}

// Ledger gives the ledger of a run that has finished; nil where the run has no name, and so no other process.
func (r *Run) Ledger() *Ledger {
	if !r.shared {
		return nil
	}
	l := &Ledger{Version: ResultVersion, Run: r.ID, Instance: r.instance, Ended: driver.Now()}
	for _, t := range r.Topics() {
		l.Topics = append(l.Topics, t.ledger())
	}
	return l
}

func (t *Topic) ledger() TopicLedger {
	all := t.track.Ledger()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark(driver.Now())
	l := TopicLedger{Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, Producers: all.Producers, Index: t.index}
	for _, g := range t.order {
		i := slices.IndexFunc(all.Groups, func(a track.GroupLedger) bool { return a.Name == g.account })
		g.mu.Lock()
		closed := g.closed
		g.mu.Unlock()
		of := GroupLedger{
			GroupLedger: all.Groups[i], Subscriber: g.subscriber, Kept: g.kept, Earliest: g.earliest, Ready: g.ready.Load(), Closed: closed,
		}
		if g.backlog.known {
			of.Asked, of.Backlog = g.backlog.at, g.backlog.n
		}
		l.Groups = append(l.Groups, of)
	}
	return l
}

// Write encodes the ledger; a message takes a fraction of a bit where nearly all went well, and up to three bits otherwise.
func (l *Ledger) Write(w io.Writer) error {
	z := gzip.NewWriter(w)
	if err := errors.Join(gob.NewEncoder(z).Encode(l), z.Close()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// ReadLedger decodes what Write encoded.
func ReadLedger(from io.Reader) (*Ledger, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("no ledger: %w", err)
	}
	var l Ledger
	if err := gob.NewDecoder(z).Decode(&l); err != nil {
		return nil, fmt.Errorf("a damaged ledger: %w", err)
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // the checksum is at the end
		return nil, fmt.Errorf("a damaged ledger: %w", err)
	}
	if l.Version != ResultVersion {
		return nil, fmt.Errorf("a ledger of version %d: this program reads version %d", l.Version, ResultVersion)
	}
	return &l, nil
}

// spans is what a group expects of a producer, as the process that holds this share of the group knows it. The index is that of the
// producer's own process, which noted its numbers once a second: of the second in which the group became ready nothing is expected.
func (g *GroupLedger) spans(id uint64, next uint64, index []Mark) []track.Bounds {
	for _, s := range g.Sources {
		if s.ID == id && !s.Foreign {
			return s.Spans
		}
	}
	b := track.Everything()[0]
	if !g.Earliest {
		b.From = next
		if i := slices.IndexFunc(index, func(m Mark) bool { return m.Seen >= g.Ready }); i >= 0 {
			b.From = index[i].Next
		}
	}
	if g.Closed != 0 && !g.Kept {
		b.Until = 0
		for _, m := range index {
			if m.At <= g.Closed {
				b.Until = m.Next
			}
		}
	}
	return []track.Bounds{b}
}
