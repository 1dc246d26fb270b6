package result

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"

// Subscribers is what a result calls those consumers of a topic that are in no group and each get every message.
const Subscribers = "subscribers"

// ReadBack is what a result calls the account of a driver that only sends: nobody consumed the messages, but the broker was asked at the end which of those that
// it had confirmed it has.
const ReadBack = "read back"

// Account is what became of the messages that one group should have received.
type Account struct {
	Group       string `json:"group"`       // [Subscribers] where each consumer gets every message
	Subscribers int    `json:"subscribers"` // of these, how many at a time, and all that began with the earliest: each expects every message
	track.Tally
	Lost        uint64        `json:"lost"`                // missing, and the broker has them no more for the group
	Undelivered uint64        `json:"undelivered"`         // missing, and the broker still has as many
	Uncertain   uint64        `json:"uncertain"`           // missing, and it cannot be known whether the broker still has them
	Unordered   bool          `json:"unordered,omitempty"` // the broker delivers messages out of their order, as by priority or after a delay: reordered is not observed
	Doubted     uint64        `json:"doubted,omitempty"`   // of those that are uncertain, sent just when a consumer came or left for which nothing is kept: it may not have been there
	Late        uint64        `json:"late,omitempty"`      // of several processes: not expected, as they were sent when all consumers had left at the end of the test, for which nothing is kept
	Elsewhere   uint64        `json:"elsewhere,omitempty"` // missing here, and received by a process of the test that is not here, or that was killed before it could tell, or lost; or received at another topic by a group of the same name
	Ranges      []track.Range `json:"ranges,omitempty"`    // of what is missing, the first
}

// ShownRanges is how many ranges of missing messages a result names.
const ShownRanges = 20

// Backlog is what a broker has for a group. Each is a number of messages.
type Backlog struct {
	Messages    int64 `json:"messages"`          // that the group has not settled: those not delivered and those in flight
	Undelivered int64 `json:"undelivered"`       // of these, those that the broker knows it has never delivered to the group; 0 where it cannot tell
	Dropped     int64 `json:"dropped,omitempty"` // received by the process that asked, not settled, and not in Messages: the broker has dropped them
}

// Held is how many received messages a broker has at least and at most.
type Held struct{ Least, Most int64 }

// Waiting is what is known of the messages that a broker has for a group.
type Waiting struct {
	Backlog
	Held    Held  // of the backlog, what was received
	Strange int64 // as many at most may be none of the topic's messages, beside those that are held
}

// bounds is how many messages the broker has at least and at most that the group has not received.
func (w Waiting) bounds() (least, most uint64) {
	least = uint64(max(0, max(0, w.Undelivered, w.Messages-w.Held.Most)-w.Strange))
	held := max(0, w.Held.Least-w.Dropped) // what was dropped is in no backlog
	return least, uint64(max(0, w.Undelivered, w.Messages-held))
}

// Divide says what became of missing messages by what the broker has for the group: sure of them were there to be counted, and possible
// at most. What the broker never delivered nobody has received, and so it is not held.
func Divide(missing, sure, possible uint64, w Waiting) (lost, undelivered, uncertain uint64) {
	least, most := w.bounds()
	undelivered = min(possible, least)
	lost = sure - min(sure, most)
	return lost, undelivered, missing - lost - undelivered
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
	a.Lost += b.Lost
	a.Undelivered += b.Undelivered
	a.Uncertain += b.Uncertain
	a.Doubted += b.Doubted
	a.Late += b.Late
	a.Elsewhere += b.Elsewhere
}
