package account

import "maps"

// Subscribers names the account of a topic's consumers that are in no group.
const Subscribers = "subscribers"

// ReadBack names the account of a driver that only sends: the broker was asked at the end for the
// messages that it had confirmed.
const ReadBack = "read back"

// Why is a reason for uncertain messages.
type Why string

// The reasons.
const (
	Joining        Why = "joining"         // sent when a consumer came
	Leaving        Why = "leaving"         // sent within a second of a consumer's going, where the broker keeps nothing
	Removed        Why = "removed"         // the test deleted or emptied the topic
	NoBacklog      Why = "no-backlog"      // there is no exact answer of the broker about its backlog
	OtherReader    Why = "other-reader"    // another reader may have received it
	Killed         Why = "killed"          // a process that consumed was killed
	MissingProcess Why = "missing-process" // the ledger of a process is missing
)

// Account is the fate of the messages that one group expects. Missing is the sum of Routed, Lost,
// Undelivered and Uncertain.
type Account struct {
	Group       string `json:"group"`       // or [Subscribers], or [ReadBack]
	Subscribers int    `json:"subscribers"` // how many at a time; each expects every message
	Tally
	Routed      uint64         `json:"routed"`              // missing, but received by the test on another topic
	Lost        uint64         `json:"lost"`                // missing, and not in the group's backlog
	Undelivered uint64         `json:"undelivered"`         // missing, and the group's backlog has as many
	Uncertain   uint64         `json:"uncertain"`           // missing for a reason that cannot be decided
	Why         map[Why]uint64 `json:"why,omitempty"`       // of the uncertain
	Unordered   bool           `json:"unordered,omitempty"` // the broker reorders by design: reordered is not observed
	Ranges      []Range        `json:"ranges,omitempty"`    // the first missing ones, without the routed
}

// ShownRanges is how many ranges of missing messages an account has at most.
const ShownRanges = 20

// Range is consecutive messages of one producer.
type Range struct {
	ID   uint64 `json:"id"`   // the producer
	From uint64 `json:"from"` // the first
	To   uint64 `json:"to"`   // the last, included
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

// Backlog is a broker's answer about a group. Each is a number of messages.
type Backlog struct {
	Messages    int64 `json:"messages"`          // not settled by the group: not delivered, or in flight
	Undelivered int64 `json:"undelivered"`       // never delivered to the group, as part of Messages; 0 if not reported
	Dropped     int64 `json:"dropped,omitempty"` // received, not settled, and dropped by the broker: not in Messages
}

// divide splits missing messages into lost, undelivered and the rest, which is uncertain. atLeast
// and atMost bound the messages of the backlog that the group has received; other bounds the rest.
func (b Backlog) divide(missing uint64, atLeast, atMost, other int64) (lost, undelivered uint64) {
	least := max(0, max(0, b.Undelivered, b.Messages-atMost)-other)
	most := max(0, b.Undelivered, b.Messages-max(0, atLeast-b.Dropped))
	undelivered = min(missing, uint64(least))                //gosec:disable G115 -- not negative
	return missing - min(missing, uint64(most)), undelivered //gosec:disable G115 -- not negative
}
