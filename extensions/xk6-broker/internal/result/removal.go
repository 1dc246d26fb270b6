package result

import (
	"math"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// Removal is what is known of the messages that a group lacked when the test itself deleted or emptied its topic. Each is a number of messages.
type Removal struct {
	Lacked      uint64 // that had not arrived
	Least, Most uint64 // of these, so many the broker had at least and at most: those it has no more for the test's doing
}

// RemovalOf is one of a group that lacked so many messages, before which the broker said what it had; had is nil where it cannot tell, and left
// is what it still has, nil where that is nothing. Meanwhile is how many it may have got since it said what it had.
func RemovalOf(lacked, meanwhile uint64, had, left *Waiting) Removal {
	if had == nil {
		return Removal{Lacked: lacked, Most: lacked}
	}
	least, most := had.bounds()
	if left != nil {
		_, still := left.bounds()
		least -= min(least, still)
	}
	return Removal{Lacked: lacked, Least: min(lacked, least), Most: min(lacked, most+meanwhile)}
}

// Add adds a further removal.
func (r *Removal) Add(o Removal) {
	r.Lacked += o.Lacked
	r.Least += o.Least
	r.Most += o.Most
}

// DivideRemoved says what became of the messages that count as removed: what the broker did not have then is lost. Some of what was lacked may have
// arrived since, and nothing tells whether the broker had those.
func (a *Account) DivideRemoved(r Removal) {
	lost := a.Removed - min(a.Removed, r.Most)
	removed := a.Removed - min(a.Removed, r.Lacked-min(r.Lacked, r.Least))
	uncertain := a.Removed - lost - removed
	a.Removed = removed
	a.Missing += lost + uncertain
	a.Lost += lost
	a.Uncertain += uncertain
}

// TopicRemoval is that a process deleted or emptied a topic.
type TopicRemoval struct {
	Asked   int64              `json:"asked"`         // when the broker was asked what it had, ns since the Unix epoch
	Done    int64              `json:"done"`          // when it had that no more
	Certain bool               `json:"certain"`       // else it may have been another broker's topic, or nothing may have been done
	Had     map[string]Emptied `json:"had,omitempty"` // by group, where the broker could tell
}

// Emptied is what a broker had for a group, and what of that it had left, at most.
type Emptied struct {
	Had  Backlog `json:"had"`
	Left Backlog `json:"left"`
}

// Agreed is a call that all processes of the test make, in which one deletes or empties a topic for all: it does so when all have come to the call, and the
// others go on when it has.
type Agreed struct {
	Call  string `json:"call"`  // names it, in all of them alike
	From  int64  `json:"from"`  // when this process came to it, ns since the Unix epoch
	Until int64  `json:"until"` // when it went on
}

// removal is that one of several processes deleted or emptied a topic.
type removal struct {
	TopicRemoval
	by     *Ledger            // of the process
	agreed map[*Ledger]Agreed // when those came to it and went on that made the call too
}

// removalsIn lists the removals that a process made, with what each process knows of the calls that all made.
func removalsIn(l *TopicLedger, by *Ledger, agreed map[string]map[*Ledger]Agreed) (all []removal) {
	for _, done := range l.Removals {
		r := removal{TopicRemoval: done, by: by}
		for _, a := range l.Agreed {
			if a.From <= done.Asked && done.Done <= a.Until {
				r.agreed = agreed[a.Call]
			}
		}
		all = append(all, r)
	}
	return all
}

// seen is within which time it was for a process, by a clock that may differ by so much from its own. Where all made the call nothing goes by the others' clocks.
func (r removal) seen(by *Ledger) (from, until, skew int64) {
	if a, there := r.agreed[by]; there && by != r.by {
		return a.From, a.Until, 0
	}
	return r.Asked, r.Done, int64(by.apart(r.by))
}

// attended tells whether a group may have had members in some process while the messages were removed, and whether later. Those in another process, which
// have gone, may have gone for the broker a little later.
func (r removal) attended(shares []groupShare) (meanwhile, later bool) {
	for _, s := range shares {
		from, until, skew := r.seen(s.by)
		gone := skew
		if s.by != r.by {
			gone += int64(leaving)
		}
		for _, p := range s.There {
			if p.Until == math.MaxInt64 || p.Until+gone >= from {
				later = true
				meanwhile = meanwhile || p.From-skew <= until
			}
		}
	}
	return meanwhile, later
}

// leaving is how long a broker may take to have all again of what it had delivered to one who leaves.
const leaving = time.Second

// before is which of a producer's messages the broker had been given when they were removed.
func (s sender) before(r removal) (g track.Given) {
	from, until, skew := r.seen(s.by)
	g.Sure, _ = s.course.HandedOut(from-skew-int64(s.slowest), s.next)
	_, g.Possible = s.course.HandedOut(until+skew, s.next)
	return g
}

// since is the first number of a producer that a process's share in a group can expect: what was removed before it came it does not.
func (s sender) since(share groupShare, removals []removal) (from uint64) {
	for _, r := range removals {
		if _, until, skew := r.seen(share.by); r.Certain && share.consumed() && share.There[0].From-skew > until {
			asked, _, skew := r.seen(s.by)
			least, _ := s.course.HandedOut(asked-skew, s.next)
			from = max(from, least)
		}
	}
	return from
}

// divideRemoved says what became of what all processes together did not receive and may have removed. What one of them removed is known only where
// nobody, in no process, could receive meanwhile or after that, and the broker said what it had: those were removed, and as many as it cannot have had
// are lost.
func divideRemoved(name string, shares []groupShare, removals []removal, all track.Whole, w Waiting) (removed, lost uint64) {
	var most uint64
	for i, r := range removals {
		n := all.Removals[i]
		e, told := r.Had[name]
		meanwhile, later := r.attended(shares)
		had := n.Possible
		if told && !meanwhile {
			_, m := Waiting{Backlog: e.Had}.bounds()
			had = min(had, m)
		}
		if told && !meanwhile && !later {
			w.Backlog = e.Had
			least, _ := w.bounds()
			_, left := Waiting{Backlog: e.Left}.bounds()
			removed = max(removed, min(n.Possible, least-min(least, left)))
		}
		most += had
	}
	for _, n := range all.Removals {
		lost = max(lost, n.Sure-min(n.Sure, most))
	}
	return min(removed, all.Removed-lost), lost
}
