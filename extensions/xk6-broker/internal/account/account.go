//gosec:disable G115 -- counts, far below their limits
package account

import "maps"

// Subscribers is the name of the account of the consumers of a topic that are in no group and each
// get every message.
const Subscribers = "subscribers"

// ReadBack is the name of the account of a driver that only sends: nobody consumed the messages,
// but the broker was asked at the end which of the messages that it had confirmed it has.
const ReadBack = "read back"

// Why is why the fate of messages is not known.
type Why string

// The reasons.
const (
	Joining        Why = "joining"         // sent within a second of a consumer's coming, and the broker may not have kept it
	Leaving        Why = "leaving"         // sent within a second of a consumer's going, and the broker keeps nothing
	Removed        Why = "removed"         // the test deleted or emptied the topic
	NoBacklog      Why = "no-backlog"      // the broker did not say exactly what it has
	OtherReader    Why = "other-reader"    // others may have received it: messages go by keys, or are selected
	Killed         Why = "killed"          // a process that consumed was killed
	Interrupted    Why = "interrupted"     // the test was interrupted before the broker answered
	MissingProcess Why = "missing-process" // the ledger of a process is missing
)

// Account is what became of the messages that one group should have received. Missing is the sum of
// Routed, Lost, Undelivered and Uncertain.
type Account struct {
	Group       string `json:"group"`       // or [Subscribers], or [ReadBack]
	Subscribers int    `json:"subscribers"` // how many at a time; each expects every message
	Tally
	Routed      uint64         `json:"routed"`              // missing here, and received by a consumer of the test on another topic
	Lost        uint64         `json:"lost"`                // missing, and the broker has them no more for the group
	Undelivered uint64         `json:"undelivered"`         // missing, and the broker still has as many
	Uncertain   uint64         `json:"uncertain"`           // missing, and it cannot be known what became of them
	Why         map[Why]uint64 `json:"why,omitempty"`       // of those that are uncertain
	Unordered   bool           `json:"unordered,omitempty"` // the broker delivers messages out of their order, as by priority or after a delay: reordered is not observed
	Ranges      []Range        `json:"ranges,omitempty"`    // of what is missing and not routed, the first
}

// ShownRanges is how many ranges of missing messages an account names.
const ShownRanges = 20

// Range is consecutive messages of one producer.
type Range struct {
	ID   uint64 `json:"id"`   // the producer
	From uint64 `json:"from"` // the first
	To   uint64 `json:"to"`   // the last, which is in the range
}

// Doubt adds n uncertain messages.
func (a *Account) Doubt(why Why, n uint64) {
	if n == 0 {
		return
	}
	a.Uncertain += n
	a.Why = maps.Clone(a.Why) // accounts are copied
	if a.Why == nil {
		a.Why = map[Why]uint64{}
	}
	a.Why[why] += n
}

// Join adds the account of a further subscriber.
func (a *Account) Join(b Account) {
	a.Subscribers++
	a.Sum(b)
	a.Ranges = append(a.Ranges, b.Ranges[:min(len(b.Ranges), ShownRanges-len(a.Ranges))]...)
}

// Sum adds the counts of another account.
func (a *Account) Sum(b Account) {
	a.Tally.Add(b.Tally)
	a.Unordered = a.Unordered || b.Unordered
	a.Routed += b.Routed
	a.Lost += b.Lost
	a.Undelivered += b.Undelivered
	for why, n := range b.Why {
		a.Doubt(why, n)
	}
}

// Backlog is what a broker has for a group. Each is a number of messages.
type Backlog struct {
	Messages    int64 `json:"messages"`          // that the group has not settled: those not delivered and those in flight
	Undelivered int64 `json:"undelivered"`       // of these, those that the broker knows it has never delivered to the group; 0 if it cannot tell
	Dropped     int64 `json:"dropped,omitempty"` // received by the process that asked, not settled, and not in Messages: the broker has dropped them
}

// Waiting is a backlog and what is in it beside the messages that the group has not received.
type Waiting struct {
	Backlog
	SureHeld, Held int64 // received and not settled: at least, and at most
	Strange        int64 // as many at most are none of the messages in question
}

// Divide says what became of missing messages by the broker's backlog: it had been given sure of
// them for certain, and possible at most. Messages that the broker never delivered are not held.
func Divide(missing, sure, possible uint64, w Waiting) (lost, undelivered, uncertain uint64) {
	least := uint64(max(0, max(0, w.Undelivered, w.Messages-w.Held)-w.Strange))
	most := uint64(max(0, w.Undelivered, w.Messages-max(0, w.SureHeld-w.Dropped)))
	undelivered = min(possible, least)
	lost = sure - min(sure, most)
	return lost, undelivered, missing - lost - undelivered
}
