package account

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// LedgerVersion is the version of the format of [Ledger.Write].
const LedgerVersion = 10

// Ledger lists the messages of one process of a test. Times are ns since the Unix epoch.
type Ledger struct {
	Version    int           `json:"version"`
	Run        uint32        `json:"run"`
	Instance   uint32        `json:"instance"`
	Clock      string        `json:"clock"`                // the same for processes that read one clock
	Ended      int64         `json:"ended"`                // when the ledger was made
	Unfinished bool          `json:"unfinished,omitempty"` // the test went on: the process was killed
	Topics     []TopicLedger `json:"topics"`

	Summary json.RawMessage `json:"summary,omitempty"` // of an unfinished ledger: the result of the same instant
}

// TopicLedger is the ledger of one topic.
type TopicLedger struct {
	Broker    string             `json:"broker"`
	Driver    string             `json:"driver"`
	Topic     string             `json:"topic"`
	Failed    int64              `json:"failed,omitempty"`    // sends that failed; the broker may have their messages
	Selected  bool               `json:"selected,omitempty"`  // not every group gets every message: by keys, or by choice
	Unordered bool               `json:"unordered,omitempty"` // the broker reorders by design, such as by priority
	Spends    bool               `json:"spends,omitempty"`    // settled messages are not kept for later groups
	Removed   []int64            `json:"removed,omitempty"`   // when this process deleted or emptied the topic
	Slowest   int64              `json:"slowest,omitempty"`   // the longest time of a send, in ns
	Producers []ProducerSnapshot `json:"producers"`
	Groups    []GroupLedger      `json:"groups"`
}

// GroupLedger lists the messages that a group received in one process.
type GroupLedger struct {
	GroupSnapshot
	Subscriber bool       `json:"subscriber,omitempty"` // it gets every message by itself, in no group
	Kept       bool       `json:"kept,omitempty"`       // the broker keeps its messages while no member is there
	Earliest   bool       `json:"earliest,omitempty"`   // it expects all messages, also those sent before it came
	There      []Presence `json:"there"`                // when it had members
	Left       []Presence `json:"left,omitempty"`       // when members left, where the broker keeps nothing
	Asked      int64      `json:"asked,omitempty"`      // when the broker reported Backlog exactly; 0 if it did not
	Backlog    Backlog    `json:"backlog"`
	Leftovers  int64      `json:"leftovers,omitempty"` // of Backlog, none of the test's messages: at most
	Held       int64      `json:"held,omitempty"`      // received, in no account, and perhaps not settled: at most
	Doubtful   bool       `json:"doubtful,omitempty"`  // the backlog need not have exactly the unsettled messages
	Cut        bool       `json:"cut,omitempty"`       // a member left before everything on its way to it had arrived
}

// Presence is a time during which something lasted in a process.
type Presence struct {
	From  int64 `json:"from"`
	Until int64 `json:"until"` // math.MaxInt64 if it lasts
}

// joined reports whether the group had a member in the process.
func (g *GroupLedger) joined() bool { return len(g.There) > 0 }

// Write encodes the ledger as JSON, compressed by gzip.
func (l *Ledger) Write(w io.Writer) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		err = errors.Join(json.NewEncoder(z).Encode(l), z.Close())
	}
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// ReadLedger decodes a ledger that Write encoded.
func ReadLedger(from io.Reader) (*Ledger, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("no ledger of version %d, or a damaged one: %w", LedgerVersion, err)
	}
	l := &Ledger{}
	if err = json.NewDecoder(z).Decode(l); err == nil {
		_, err = io.Copy(io.Discard, z) //gosec:disable G110 -- to its end, where the checksum is
	}
	if err != nil {
		return nil, fmt.Errorf("a damaged ledger, or not all of it: %w", err)
	}
	if l.Version != LedgerVersion {
		return nil, fmt.Errorf("a ledger of version %d: this program reads version %d", l.Version, LedgerVersion)
	}
	for _, t := range l.Topics {
		for _, g := range t.Groups {
			if !slices.IsSortedFunc(g.Sources, func(a, b SourceSnapshot) int { return cmp.Compare(a.ID, b.ID) }) {
				return nil, fmt.Errorf("a damaged ledger: the sources of group %q are not in their order", g.Name)
			}
		}
	}
	return l, nil
}

// Snapshot lists the messages of one topic in one process.
type Snapshot struct {
	Producers []ProducerSnapshot
	Groups    []GroupSnapshot
}

// ProducerSnapshot lists the messages of a producer that must arrive.
type ProducerSnapshot struct {
	ID       uint64 `json:"id"`
	Next     uint64 `json:"next"` // one more than the last number
	Expected Set    `json:"expected,omitzero"`
	Course   Course `json:"course,omitempty"`
}

// GroupSnapshot lists the messages that a group received in this process, by producer.
type GroupSnapshot struct {
	Name    string           `json:"name"`
	Tally   Tally            `json:"tally"`
	Sources []SourceSnapshot `json:"sources"` // ascending
}

// SourceSnapshot lists the messages that a group received of one producer, of any process.
type SourceSnapshot struct {
	ID       uint64   `json:"id"`
	Foreign  bool     `json:"foreign,omitempty"` // the producer is of another topic or process: there are no Spans
	Spans    []Bounds `json:"spans,omitempty"`   // expected messages
	Received Set      `json:"received,omitzero"`
	Settled  Set      `json:"settled,omitzero"`
	Again    Set      `json:"again,omitzero"`   // of Received, those whose first copy the broker had delivered before
	Drained  Set      `json:"drained,omitzero"` // read and, if received before, settled to complete the account
}

// Snapshot copies the messages so far. It is consistent once nothing is going on.
func (t *Topic) Snapshot() Snapshot {
	var l Snapshot
	for _, g := range t.Groups() {
		l.Groups = append(l.Groups, GroupSnapshot{Name: g.name, Tally: g.Tally(), Sources: g.snapshots()})
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(t.producers)) {
		p := t.producers[id]
		next := p.next.Load()
		l.Producers = append(l.Producers, ProducerSnapshot{
			ID: id, Next: next, Expected: p.expected.snapshot(), Course: p.course.course(next),
		})
	}
	return l
}

func (g *Group) snapshots() []SourceSnapshot {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	all := make([]SourceSnapshot, 0, len(g.deliveries))
	for _, id := range slices.Sorted(maps.Keys(g.deliveries)) {
		d := g.deliveries[id]
		all = append(all, SourceSnapshot{
			ID: id, Foreign: d.foreign, Spans: d.expects(), Received: d.received.snapshot(),
			Settled: d.settled.snapshot(), Again: d.again.snapshot(), Drained: d.drained.snapshot(),
		})
	}
	return all
}

// source returns the messages that the group received of a producer; nil if it neither received nor
// expects any.
func (g *GroupSnapshot) source(id uint64) *SourceSnapshot {
	i, ok := slices.BinarySearchFunc(g.Sources, id, func(s SourceSnapshot, id uint64) int { return cmp.Compare(s.ID, id) })
	if !ok {
		return nil
	}
	return &g.Sources[i]
}
