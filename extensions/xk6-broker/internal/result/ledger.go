package result

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// Mark is that a producer had handed out Next numbers, from when this was seen first to when it was seen last, in ns since the Unix epoch.
type Mark struct {
	At, Seen int64
	Next     uint64
}

// LedgerVersion is the version of what [Ledger.Write] writes.
const LedgerVersion = 6

// Ledger is what one process of a test knows of its messages, one by one: with those of the other processes it gives the exact account.
type Ledger struct {
	Version  int
	Run      uint32
	Instance uint32
	Clock    string // names the clock that the process read, see Machine of package clock
	Ended    int64  // when the account was closed, ns since the Unix epoch
	Topics   []TopicLedger

	// Unfinished tells that the test went on when the ledger was written: its process was killed, else there would be one of its end.
	Unfinished bool
}

// TopicLedger is the ledger of one topic.
type TopicLedger struct {
	Broker, Driver, Topic string
	Producers             []track.ProducerLedger
	Index                 map[uint64][]Mark // by producer, ascending
	Groups                []GroupLedger
	Failed                int64 // sends that failed, whose messages the broker may have all the same
	Routed                bool  // some of the messages went where their keys said
	Spends                bool  // what consumers settle is not kept for groups that come later
	Removals              []TopicRemoval
}

// GroupLedger is what a group received in this process.
type GroupLedger struct {
	track.GroupLedger
	Subscriber bool // it gets every message by itself, in no group
	Kept       bool // the broker keeps messages for it while nobody is there
	Earliest   bool // it expects everything, whatever was sent before
	There      []Presence
	Asked      int64 // when the broker said what it has for the group, ns since the Unix epoch; 0 where it did not
	Backlog    Backlog
	Leftovers  int64 // what it had before anybody was there in this process, this process's own messages not counted
	Looked     int64 // when it had said so, ns since the Unix epoch
	Strangers  int64 // received, and not of this test: so many different ones at least
	SureHeld   int64 // of these, so many at least has the broker, though they were received
	Held       int64 // and so many at most
	Unheld     bool  // the broker may be done with any message that is not settled
	Again      bool  // and delivers it again all the same
}

// Presence is a time during which a group had members in a process; ns since the Unix epoch.
type Presence struct {
	From, Until int64 // Until is math.MaxInt64 where they are there still
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
	if _, err := io.Copy(io.Discard, z); err != nil { //gosec:disable G110 -- what comes is thrown away; the checksum is at the end
		return nil, fmt.Errorf("a damaged ledger: %w", err)
	}
	if l.Version != LedgerVersion {
		return nil, fmt.Errorf("a ledger of version %d: this program reads version %d", l.Version, LedgerVersion)
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
