package account

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// LedgerVersion is the version of the format of [Ledger.Write].
const LedgerVersion = 10

// Ledger is what one process of a test knows of its messages, one by one. Times are ns since the
// Unix epoch.
type Ledger struct {
	Version    int           `json:"version"`
	Run        uint32        `json:"run"`
	Instance   uint32        `json:"instance"`
	Clock      string        `json:"clock"`                // the same for processes that read one clock
	Ended      int64         `json:"ended"`                // when the ledger was made
	Unfinished bool          `json:"unfinished,omitempty"` // the test went on: the process was killed
	Topics     []TopicLedger `json:"topics"`

	// Summary is the result of the same instant, as JSON, of an unfinished ledger: a process that
	// is killed while it writes may leave files of two instants, and this is one file.
	Summary json.RawMessage `json:"summary,omitempty"`
}

// TopicLedger is the ledger of one topic.
type TopicLedger struct {
	Broker    string             `json:"broker"`
	Driver    string             `json:"driver"`
	Topic     string             `json:"topic"`
	Failed    int64              `json:"failed,omitempty"`    // sends that failed; the broker may have their messages
	Selected  bool               `json:"selected,omitempty"`  // not every group gets every message: by keys, or by choice
	Unordered bool               `json:"unordered,omitempty"` // the broker reorders by design, such as by priority
	Spends    bool               `json:"spends,omitempty"`    // messages that a group has settled are not kept for later groups
	Removed   []int64            `json:"removed,omitempty"`   // when this process deleted or emptied the topic
	Slowest   int64              `json:"slowest,omitempty"`   // the longest time of a send, in ns
	Producers []ProducerSnapshot `json:"producers"`
	Groups    []GroupLedger      `json:"groups"`
}

// GroupLedger is what a group received in one process.
type GroupLedger struct {
	GroupSnapshot
	Subscriber bool       `json:"subscriber,omitempty"` // it gets every message by itself, in no group
	Kept       bool       `json:"kept,omitempty"`       // the broker keeps its messages while no member is there
	Earliest   bool       `json:"earliest,omitempty"`   // it expects everything, also what was sent before it came
	There      []Presence `json:"there"`                // when it had members
	Left       []Presence `json:"left,omitempty"`       // when members left, where the broker keeps nothing
	Asked      int64      `json:"asked,omitempty"`      // when the broker reported Backlog; 0 if it did not, or not exactly
	Backlog    Backlog    `json:"backlog"`
	Leftovers  int64      `json:"leftovers,omitempty"` // of Backlog, none of the test's messages: at most
	Held       int64      `json:"held,omitempty"`      // received and not settled beside those of Sources: at most
	Doubtful   bool       `json:"doubtful,omitempty"`  // the backlog need not have what was received and not settled
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

// ReadLedger reads what Write wrote.
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
