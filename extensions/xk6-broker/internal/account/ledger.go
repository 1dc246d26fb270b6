package account

import (
	"encoding/json"
	"math"
	"slices"
)

// LedgerVersion is the version of what [Ledger.Write] writes.
const LedgerVersion = 9

// Ledger is what one process of a test knows of its messages, one by one. Times are ns since the
// Unix epoch.
type Ledger struct {
	Version  int    `json:"version"`
	Run      uint32 `json:"run"`
	Instance uint32 `json:"instance"`
	Clock    string `json:"clock"` // names the clock that the process read: one machine's processes have the same
	Ended    int64  `json:"ended"` // when the account was closed

	// Unfinished is set if the test went on when the ledger was written: the process was killed, or
	// it would have written another one.
	Unfinished bool `json:"unfinished,omitempty"`

	Topics []TopicLedger `json:"topics"`

	// Summary is the result of the same instant, as JSON, of an unfinished ledger: a process that
	// is killed while it writes may leave files of two instants, and this is one file.
	Summary json.RawMessage `json:"summary,omitempty"`
}

// TopicLedger is the ledger of one topic.
type TopicLedger struct {
	Broker     string             `json:"broker"`
	Driver     string             `json:"driver"`
	Topic      string             `json:"topic"`
	Failed     int64              `json:"failed,omitempty"`     // sends that failed, whose messages the broker may have all the same
	Unanswered uint64             `json:"unanswered,omitempty"` // of these, expected: they had no answer when the test was interrupted
	Selected   bool               `json:"selected,omitempty"`   // not every group gets every message: they go by their keys, or consumers select
	Unordered  bool               `json:"unordered,omitempty"`  // the broker delivers messages out of their order, such as by priority
	Spends     bool               `json:"spends,omitempty"`     // what one group settles the broker need not keep for groups that come later
	Removed    []int64            `json:"removed,omitempty"`    // when this process deleted or emptied the topic
	Slowest    int64              `json:"slowest,omitempty"`    // the longest that a send took, in ns
	Producers  []ProducerSnapshot `json:"producers"`
	Courses    map[uint64]Course  `json:"courses"` // by producer
	Groups     []GroupLedger      `json:"groups"`
}

// GroupLedger is what a group received in one process.
type GroupLedger struct {
	GroupSnapshot
	Subscriber bool       `json:"subscriber,omitempty"` // it gets every message by itself, in no group
	Kept       bool       `json:"kept,omitempty"`       // the broker keeps messages for it while no member is there
	Earliest   bool       `json:"earliest,omitempty"`   // it expects everything, also what was sent before it came
	There      []Presence `json:"there"`
	Partings   []Presence `json:"partings,omitempty"` // when members left while others stayed, where the broker keeps nothing
	Asked      int64      `json:"asked,omitempty"`    // when the broker said exactly what it has for the group; 0 if it did not
	Backlog    Backlog    `json:"backlog"`
	Leftovers  int64      `json:"leftovers,omitempty"` // what it had before the first member came, without this process's own messages
	Strangers  int64      `json:"strangers,omitempty"` // received, and not of this test: as many different ones at least
	SureHeld   int64      `json:"sureHeld,omitempty"`  // of these, received and not settled: at least
	Held       int64      `json:"held,omitempty"`      // and at most
	Cut        bool       `json:"cut,omitempty"`       // a member left before everything that was on its way to it had come
}

// Presence is a time during which a group had members in a process.
type Presence struct {
	From  int64 `json:"from"`
	Until int64 `json:"until"` // math.MaxInt64 if they are there still
}

// joined says whether the group had a member in the process.
func (g *GroupLedger) joined() bool { return len(g.There) > 0 }

// gone is when the group's last member left; math.MaxInt64 if one is there still.
func (g *GroupLedger) gone() int64 {
	if !g.joined() {
		return math.MinInt64
	}
	return g.There[len(g.There)-1].Until
}

// drained says whether the process read messages to complete the account.
func (g *GroupLedger) drained() bool {
	return slices.ContainsFunc(g.Sources, func(s SourceSnapshot) bool { return s.Drained.Len() > 0 })
}
