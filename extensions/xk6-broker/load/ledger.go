package load

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

// Mark is that a producer had handed out Next numbers, from when this was seen first to when it was seen last, in ns since the Unix epoch.
type Mark struct {
	At, Seen int64
	Next     uint64
}

// ledgerVersion is the version of what [Ledger.Write] writes.
const ledgerVersion = 4

// Ledger is what one process of a test knows of its messages, one by one: with those of the other processes it gives the exact account.
type Ledger struct {
	Version  int
	Run      uint32
	Instance uint32
	Clock    string // names the clock that the process read, see machineClock
	Ended    int64  // when the account was closed, ns since the Unix epoch
	Topics   []TopicLedger
}

// TopicLedger is the ledger of one topic.
type TopicLedger struct {
	Broker, Driver, Topic string
	Producers             []track.ProducerLedger
	Index                 map[uint64][]Mark // by producer, ascending
	Groups                []GroupLedger
	Failed                int64 // sends that failed, whose messages the broker may have all the same
	Routed                bool  // some of the messages went where their keys said
}

// GroupLedger is what a group received in this process.
type GroupLedger struct {
	track.GroupLedger
	Subscriber bool // it gets every message by itself, in no group
	Kept       bool // the broker keeps messages for it while nobody is there
	Earliest   bool // it expects everything, whatever was sent before
	There      []Presence
	Asked      int64 // when the broker said what it has for the group, ns since the Unix epoch; 0 where it did not
	Backlog    driver.Backlog
	Leftovers  int64 // what it had before anybody was there in this process, this process's own messages not counted
	Looked     int64 // when it had said so, ns since the Unix epoch
	Strangers  int64 // received, and not of this test: so many different ones at least
	SureHeld   int64 // of these, so many at least has the broker, though they were received
	Held       int64 // and so many at most
	Unheld     bool  // the broker may be done with any message that is not settled
}

// Presence is a time during which a group had members in a process; ns since the Unix epoch.
type Presence struct {
	From, Until int64 // Until is math.MaxInt64 where they are there still
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
	l := &Ledger{Version: ledgerVersion, Run: r.ID, Instance: r.instance, Clock: machineClock(), Ended: driver.Now()}
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
	l := TopicLedger{
		Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, Producers: all.Producers, Failed: t.failed.Load(), Routed: t.routed.Load(),
		Index: make(map[uint64][]Mark, len(t.index)), // a copy: whoever collects still marks
	}
	for id, marks := range t.index {
		l.Index[id] = slices.Clone(marks)
	}
	for _, g := range t.order {
		i := slices.IndexFunc(all.Groups, func(a track.GroupLedger) bool { return a.Name == g.account })
		l.Groups = append(l.Groups, g.ledger(all.Groups[i]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.announced)) {
		if b := t.announced[name]; b.known {
			l.Groups = append(l.Groups, GroupLedger{GroupLedger: track.GroupLedger{Name: name}, Kept: true, Asked: b.at, Backlog: b.Backlog})
		}
	}
	return l
}

func (g *group) ledger(known track.GroupLedger) GroupLedger {
	l := GroupLedger{
		GroupLedger: known, Subscriber: g.subscriber, Kept: g.kept, Earliest: g.earliest, Leftovers: g.leftovers, Looked: g.looked,
		Strangers: g.strangers.distinct(), Unheld: g.unheld.Load(),
	}
	l.SureHeld, l.Held = g.strangers.held()
	g.mu.Lock()
	defer g.mu.Unlock()
	l.There = slices.Clone(g.there)
	if last := g.backlog.Load(); last != nil && last.known {
		l.Asked, l.Backlog = last.at, last.Backlog
	}
	return l
}

// machineClock names the clock that this process reads: processes that name one clock have one time, those on different machines need
// not. It is "" where the system has no name for it.
func machineClock() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id") // of Linux, containers included
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot))
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
	if l.Version != ledgerVersion {
		return nil, fmt.Errorf("a ledger of version %d: this program reads version %d", l.Version, ledgerVersion)
	}
	return &l, nil
}

// handedOut is how many numbers a producer had handed out at a time, as its index knows: so many at least, and at most. next is how many
// there were in the end.
func handedOut(index []Mark, at int64, next uint64) (least, most uint64) {
	if i := sort.Search(len(index), func(i int) bool { return index[i].At > at }); i > 0 {
		least = index[i-1].Next
	}
	if i := sort.Search(len(index), func(i int) bool { return index[i].Seen >= at }); i < len(index) {
		return least, index[i].Next
	}
	return least, next
}

// spans is what a group expects of a producer, as the process that holds this share of the group knows it. The index is that of the
// producer's own process, which noted its numbers once a second: of the second in which the group became ready nothing is expected.
func (g *GroupLedger) spans(id, next uint64, index []Mark) []track.Bounds {
	if s := g.Source(id); s != nil && !s.Foreign {
		return s.Spans
	}
	var spans []track.Bounds
	for i, p := range g.There {
		b := track.Everything()[0]
		if i > 0 || !g.Earliest {
			_, b.From = handedOut(index, p.From, next)
		}
		if p.Until != math.MaxInt64 && !g.Kept {
			b.Until, _ = handedOut(index, p.Until, next)
		}
		if b.From < b.Until {
			spans = append(spans, b)
		}
	}
	return spans
}
