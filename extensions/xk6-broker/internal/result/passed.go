package result

import (
	"fmt"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason"
)

// Passed is what is known of the messages of another topic that come in at a group.
type Passed struct {
	Broker, From string // the other topic
	Expected     uint64 // since the first came in; of dead letters those that were rejected
	Missing      uint64 // of these
	Drained      uint64 // of these, read when the group left, by none of its consumers
	Failed       uint64 // sends to the topic that failed
	Keyed        bool   // what is missing was perhaps meant for others, by its key
	Rejected     bool   // what comes in are dead letters of the other topic's own consumers
	Emptied      bool   // the test itself has deleted or emptied a topic that they were in
}

// judge adds what is known of the messages of the other topic that are missing, and of those that were drained.
func (by Passed) judge(v *Verdict, at subject) {
	if by.Missing > 0 {
		whose := "sent to"
		if by.Rejected {
			whose = "rejected by the consumers of"
		}
		v.note(at, reason.Routed, reason.Values{
			"why": "missing", "count": by.Missing, "total": by.Expected, "whose": whose, "from": by.From, "share": share(int64(by.Missing), int64(by.Expected)), //gosec:disable G115 -- counts, far below their limits
		})
	}
	if s := share(int64(by.Drained), int64(by.Expected)); s > trifle { //gosec:disable G115 -- counts, far below their limits
		v.invalid(at, reason.Drained, reason.Values{"count": by.Drained, "share": s, "from": by.From})
	}
}

// Pass adds what came in at one subscriber to what came in at others.
func (g *Group) Pass(by Passed) {
	i := slices.IndexFunc(g.Passed, func(other Passed) bool { return other.Broker == by.Broker && other.From == by.From })
	if i < 0 {
		g.Passed = append(g.Passed, by)
		return
	}
	g.Passed[i].Expected += by.Expected
	g.Passed[i].Missing += by.Missing
	g.Passed[i].Drained += by.Drained
	g.Passed[i].Failed += by.Failed
	g.Passed[i].Rejected = g.Passed[i].Rejected && by.Rejected
	g.Passed[i].Emptied = g.Passed[i].Emptied || by.Emptied
}

// strayed is how many messages of other topics are missing from a group's distributions.
func (g *Group) strayed() (n uint64) {
	for _, by := range g.Passed {
		n += by.Drained
		if !by.Keyed {
			n += by.Missing + by.Failed
		}
	}
	return n
}

// NoCopies is why nothing is known of copies of what is read back.
const NoCopies = "of what is read back from the broker it is not known which is a copy"

// withoutCopies says why [Group.Copies] does not hold.
func (g *Group) withoutCopies() string {
	if g.Group == ReadBack {
		return NoCopies
	}
	return fmt.Sprintf("the %d messages that were received are of other topics or tests, and in no account of this one", g.Strangers)
}

// Copies tells whether it is known of what the group received which is a copy of which: of messages of other topics or tests it is not, nor of what is read back.
func (g *Group) Copies() bool {
	return g.Group != ReadBack && (g.Received+g.Drained > 0 || g.Strangers == 0)
}
