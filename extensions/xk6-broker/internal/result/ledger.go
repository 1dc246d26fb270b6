package result

import (
	"io"
	"math"
	"slices"
	"sort"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// Mark is that a producer had handed out Next numbers right before a time, in ns since the Unix epoch.
type Mark struct {
	At   int64
	Next uint64
}

// Course is when a producer had handed out how many numbers. What it handed out between two marks, that was within Width of the first of them, in ns.
type Course struct {
	Width int64
	Marks []Mark // ascending
}

// LedgerVersion is the version of what [Ledger.Write] writes.
const LedgerVersion = 8

// Ledger is what one process of a test knows of its messages, one by one: with those of the other processes it gives the exact account. One that
// was read has its sets of numbers in the file, which must stay open.
type Ledger struct {
	Version  int    `json:"version"`
	Run      uint32 `json:"run"`
	Instance uint32 `json:"instance"`
	Clock    string `json:"clock"` // names the clock that the process read, see Machine of package clock
	Ended    int64  `json:"ended"` // when the account was closed, ns since the Unix epoch

	// Unfinished tells that the test went on when the ledger was written: its process was killed, else there would be one of its end.
	Unfinished bool `json:"unfinished,omitempty"`

	Topics []TopicLedger `json:"-"`

	// Summary is the result of the same instant, as JSON, of a ledger that is unfinished: a process that is killed while it writes its results leaves files of
	// two instants, and this is one file.
	Summary []byte `json:"-"`

	file io.Closer // that it was read from
}

// TopicLedger is the ledger of one topic.
type TopicLedger struct {
	Broker    string                   `json:"broker"`
	Driver    string                   `json:"driver"`
	Topic     string                   `json:"topic"`
	Failed    int64                    `json:"failed,omitempty"`    // sends that failed, whose messages the broker may have all the same
	Routed    bool                     `json:"routed,omitempty"`    // some of the messages went where their keys said
	Unordered bool                     `json:"unordered,omitempty"` // the broker delivers messages out of their order, such as by priority
	Spends    bool                     `json:"spends,omitempty"`    // what consumers settle is not kept for groups that come later
	Removals  []TopicRemoval           `json:"removals,omitempty"`
	Agreed    []Agreed                 `json:"agreed,omitempty"`
	Over      int64                    `json:"over,omitempty"` // when its consumers were told that nothing more would come, ns since the Unix epoch; 0 where they were not
	Producers []track.ProducerSnapshot `json:"-"`
	Courses   map[uint64]Course        `json:"-"` // by producer
	Groups    []GroupLedger            `json:"-"`
}

// GroupLedger is what a group received in this process.
type GroupLedger struct {
	track.GroupSnapshot `json:"-"`
	Subscriber          bool       `json:"subscriber,omitempty"` // it gets every message by itself, in no group
	Kept                bool       `json:"kept,omitempty"`       // the broker keeps messages for it while nobody is there
	Earliest            bool       `json:"earliest,omitempty"`   // it expects everything, whatever was sent before
	There               []Presence `json:"there"`
	Asked               int64      `json:"asked,omitempty"` // when the broker said what it has for the group, ns since the Unix epoch; 0 where it did not
	Backlog             Backlog    `json:"backlog"`
	Leftovers           int64      `json:"leftovers,omitempty"` // what it had before anybody was there in this process, this process's own messages not counted
	Looked              int64      `json:"looked,omitempty"`    // when it had said so, ns since the Unix epoch
	Strangers           int64      `json:"strangers,omitempty"` // received, and not of this test: so many different ones at least
	SureHeld            int64      `json:"sureHeld,omitempty"`  // of these, so many at least has the broker, though they were received
	Held                int64      `json:"held,omitempty"`      // and so many at most
	Unheld              bool       `json:"unheld,omitempty"`    // the broker may be done with any message that is not settled
	Again               bool       `json:"again,omitempty"`     // and delivers it again all the same
	Stuck               bool       `json:"stuck,omitempty"`     // one has left that may not have been given all that was sent to it
}

// Presence is a time during which a group had members in a process; ns since the Unix epoch.
type Presence struct {
	From  int64 `json:"from"`
	Until int64 `json:"until"` // math.MaxInt64 where they are there still
}

// Close lets go of the file that the ledger was read from. It may be nil.
func (l *Ledger) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return l.file.Close()
}

// producers lists those of all topics.
func (l *Ledger) producers() (all []track.ProducerSnapshot) {
	for i := range l.Topics {
		all = append(all, l.Topics[i].Producers...)
	}
	return all
}

// sources lists what the groups of all topics received of a producer.
func (l *Ledger) sources(id uint64) (all []*track.SourceSnapshot) {
	for i := range l.Topics {
		for k := range l.Topics[i].Groups {
			if s := l.Topics[i].Groups[k].Source(id); s != nil {
				all = append(all, s)
			}
		}
	}
	return all
}

// HandedOut is how many numbers a producer had handed out right before a time: so many at least, and at most. next is how many there were in the end.
func (c Course) HandedOut(at int64, next uint64) (least, most uint64) {
	i := sort.Search(len(c.Marks), func(i int) bool { return c.Marks[i].At >= at })
	if i < len(c.Marks) {
		next = c.Marks[i].Next
	}
	switch {
	case i < len(c.Marks) && c.Marks[i].At == at:
		return next, next
	case i == 0:
		return 0, next
	case at > c.Marks[i-1].At+c.Width:
		return next, next
	}
	return min(c.Marks[i-1].Next, next), next
}

// spans is what a group expects of a producer, as the process that holds this share of the group knows it: what it may, and of that what it does for certain.
// The course is by the clock of the producer's own process, which may differ by so much: of what was sent just when the group's first member came, or its last one
// left, it is not certain that somebody was there. Nor is it of what was sent so shortly before the last one left that it may have come to the broker after that: in as
// long as the slowest message took. The process's own messages a subscriber has waited for.
func (g groupShare) spans(id, next uint64, c Course, skew, slowest int64) (possible, certain []track.Bounds) {
	if s := g.Source(id); s != nil && !s.Foreign {
		return s.Spans, g.certainly(s.Spans, next, c, slowest)
	}
	for i, p := range g.There {
		if p.Until == math.MaxInt64 && g.by.Unfinished { // for how much longer it was there, nobody knows
			p.Until = g.by.Ended
		}
		may, does := track.Everything()[0], track.Everything()[0]
		if i > 0 || !g.Earliest {
			may.From, _ = c.HandedOut(p.From-skew, next)
			_, does.From = c.HandedOut(p.From+skew, next)
		}
		if p.Until != math.MaxInt64 && !g.Kept {
			_, may.Until = c.HandedOut(p.Until+skew+1, next)
			does.Until, _ = c.HandedOut(p.Until-skew-slowest, next)
		}
		possible, certain = append(possible, may), append(certain, does)
	}
	return possible, certain
}

// certainly is what a group expects for certain of what it expects of a producer of its own process.
func (g groupShare) certainly(spans []track.Bounds, next uint64, c Course, slowest int64) []track.Bounds {
	if g.Kept || g.Subscriber {
		return spans
	}
	spans = slices.Clone(spans)
	for i := range min(len(spans), len(g.There)) { // a producer that came later has none of the first times
		if p, s := g.There[len(g.There)-1-i], &spans[len(spans)-1-i]; p.Until != math.MaxInt64 {
			sure, _ := c.HandedOut(p.Until-slowest, next)
			s.Until = min(s.Until, sure)
		}
	}
	return spans
}
