//gosec:disable G115 -- counts, far below their limits
package result

import (
	"math"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// untold tells that members of a process that was killed may have received and settled more than it could tell.
func (g groupShare) untold() bool { return g.by.Unfinished && g.consumed() }

func (g groupShare) consumed() bool { return len(g.There) > 0 }

// answer is what a broker said that it has for a group, and when and to whom.
type answer struct {
	Backlog
	known bool
	at    int64   // ns since the Unix epoch
	to    *Ledger // nil where it was asked when all processes had ended
}

// asked is the broker's last word on a group. It is none where a process had members in it after that.
func (m *merger) asked(t *Topic, name string, shares []groupShare) (answer, error) {
	if !shares[0].Kept {
		return answer{}, nil
	}
	if m.known.Backlog != nil {
		b, known, err := m.known.Backlog(t.Broker, t.Driver, t.Topic, name)
		if err != nil {
			return answer{}, err
		}
		if known {
			m.askedLate = true
			return answer{Backlog: b, known: true}, nil
		}
	}
	var last answer
	for _, s := range shares {
		if s.Asked > last.at {
			last = answer{s.Backlog, true, s.Asked, s.by}
		}
	}
	for _, s := range shares {
		if s.consumed() && s.Asked == 0 && s.by.Ended > last.at {
			return answer{}, nil
		}
	}
	return last, nil
}

// group gives the account of a group: of one subscriber, or of the members that all processes had.
func (w *wholeTopic) group(name string, shares []groupShare, said answer) (Account, error) {
	ledgers := make([]track.GroupSnapshot, len(shares))
	for i, s := range shares {
		ledgers[i] = s.GroupLedger.GroupSnapshot
		ledgers[i].Unfinished = s.by.Unfinished
	}
	removals := w.removalsOf(shares)
	untold, err := w.untold(shares)
	if err != nil {
		return Account{}, err
	}
	all, err := track.Merge(w.producers, ledgers, func(id uint64) track.Terms {
		from := w.senders[id]
		terms := track.Terms{Untold: untold[id]}
		terms.Spans, terms.Certain = from.spans(id, shares, w.removals)
		terms.Late = from.late(shares)
		for _, r := range removals {
			terms.Removals = append(terms.Removals, from.before(r))
		}
		if said.known {
			terms.Sure, terms.Possible = from.given(said)
		}
		return terms
	}, ShownRanges)
	if err != nil {
		return Account{}, err
	}
	a := Account{Group: name, Tally: all.Tally, Ranges: all.Ranges, Late: all.Late}
	if a.Unordered = w.unordered; a.Unordered {
		a.Reordered = 0
	}
	waiting, holds, err := w.waiting(shares, all)
	if err != nil {
		return Account{}, err
	}
	removed, lost := divideRemoved(name, shares, removals, all, waiting)
	unknown := all.Removed - removed - lost
	a.Removed = removed
	a.Missing += lost + unknown
	switch {
	case !shares[0].Kept && slices.ContainsFunc(shares, func(s groupShare) bool { return s.Stuck }):
		a.Uncertain = all.Missing
	case !shares[0].Kept:
		a.Lost, a.Uncertain, a.Doubted = all.Missing-all.Doubted, all.Doubted, all.Doubted
	case !said.known:
		a.Uncertain = all.Missing
	default:
		waiting.Backlog = said.Backlog
		waiting.Strange += int64(unknown) // what was on its way while others were removed
		a.Lost, a.Undelivered, a.Uncertain = Divide(all.Missing, all.Sure, all.Possible, waiting)
	}
	a.Lost += lost
	a.Uncertain += unknown
	if shares[0].Kept && !holds && said.known || w.routed { // a broker is done with what lay in the client of one who has left
		a.Lost, a.Uncertain = 0, a.Uncertain+a.Lost
	}
	a.Elsewhere = min(a.Lost, all.Untold)
	a.Lost -= a.Elsewhere
	return a, nil
}

// removalsOf lists the removals of what the broker had for a group: it had nothing for those who were not there where it keeps nothing.
func (w *wholeTopic) removalsOf(shares []groupShare) (all []removal) {
	for _, r := range w.removals {
		if meanwhile, _ := r.attended(shares); shares[0].Kept || meanwhile {
			all = append(all, r)
		}
	}
	return all
}

// waiting is what is known of the messages that a broker has for a group, but for its backlog, and whether it holds what was received and not settled.
func (w *wholeTopic) waiting(shares []groupShare, all track.Whole) (of Waiting, holds bool, err error) {
	strangers, holds := int64(0), true
	of.Held = Held{Least: int64(all.SureHeld), Most: int64(all.Held)}
	for _, s := range shares {
		strangers += s.Strangers
		of.Held.Least += s.SureHeld
		of.Held.Most += s.Held
		holds = holds && !s.Unheld
	}
	if !holds {
		of.Held.Least = 0
	}
	left, err := w.leftovers(shares)
	of.Strange = max(0, left-strangers) + w.failed
	return of, holds, err
}

// spans is what a group expects of a producer, by all that the processes know: what it may, and what it does for certain.
func (s sender) spans(id uint64, shares []groupShare, removals []removal) (possible, certain []track.Bounds) {
	for _, g := range shares {
		skew := s.topic.skew(s.by, g.by)
		may, does := g.spans(id, s.next, s.course, skew, s.reach())
		may, does = slices.Clone(may), slices.Clone(does)
		if g.consumed() && len(may) > 0 {
			since := s.since(g, removals)
			may[0].From, does[0].From = max(may[0].From, since), max(does[0].From, since)
			if g.Earliest && s.topic.spends && len(s.topic.groups) > 1 {
				least, _ := s.course.HandedOut(g.There[0].From-skew, s.next)
				_, most := s.course.HandedOut(g.There[0].From+skew, s.next)
				may[0].From, does[0].From = max(may[0].From, least), max(does[0].From, most)
			}
		}
		possible, certain = append(possible, may...), append(certain, does...)
	}
	if shares[0].Kept { // it is there from its first member on
		return onwards(possible), onwards(certain)
	}
	return possible, certain
}

// reach is the longest, in ns, that a message of the producer may have taken to the broker: until it was confirmed or, where that proves nothing, as long as any took to
// a consumer. Where nothing ever came of its process nobody knows.
func (s sender) reach() int64 {
	switch {
	case s.proven:
		return int64(s.slowest)
	case s.topic.heard[s.by.Instance]:
		return int64(max(s.slowest, s.topic.transit))
	}
	return math.MaxInt64 / 2
}

// untold is which messages of each producer may have come to members in a process that was killed, after it had told for the last time. Where the broker keeps them for
// who comes later, that may be any. Else it is those that were sent after the last of the producer that it had, or so late that others have been as long on their way.
func (w *wholeTopic) untold(shares []groupShare) (map[uint64][]track.Bounds, error) {
	all := map[uint64][]track.Bounds{}
	for _, g := range shares {
		if !g.untold() {
			continue
		}
		for id, s := range w.senders {
			from := uint64(0)
			if had := g.Source(id); had != nil && !g.Kept {
				received, err := track.Load(had.Received)
				if err != nil {
					return nil, err
				}
				late, _ := s.course.HandedOut(g.by.Ended-w.skew(s.by, g.by)-int64(g.slowest), s.next)
				from = min(late, received.Next())
			}
			all[id] = append(all[id], track.Bounds{From: from, Until: math.MaxUint64})
		}
	}
	return all, nil
}

// late is what the producer handed out when nobody of a group was there any more, for which the broker keeps nothing, as consumers had been told that nothing more
// would come. It is nothing where some left when they liked.
func (s sender) late(shares []groupShare) []track.Bounds {
	first := uint64(0)
	for _, g := range shares {
		switch last := len(g.There) - 1; {
		case g.Kept:
			return nil
		case last < 0:
		case g.over == 0 || g.There[last].Until == math.MaxInt64 || g.There[last].Until < g.over:
			return nil
		default:
			_, after := s.course.HandedOut(g.There[last].Until+s.topic.skew(s.by, g.by)+1, s.next)
			first = max(first, after)
		}
	}
	return []track.Bounds{{From: first, Until: math.MaxUint64}}
}

// onwards is all from where the first of some spans begins.
func onwards(spans []track.Bounds) []track.Bounds {
	first := uint64(math.MaxUint64)
	for _, b := range spans {
		first = min(first, b.From)
	}
	return []track.Bounds{{From: first, Until: math.MaxUint64}}
}

// given is which of the producer's messages a broker had been given when it was asked: those below sure for certain, and none from
// possible on.
func (s sender) given(said answer) (sure, possible uint64) {
	if said.to == nil || said.to == s.by { // a process asks when its producers are done
		return math.MaxUint64, math.MaxUint64
	}
	skew := s.by.apart(said.to)
	sure, _ = s.course.HandedOut(said.at-int64(skew+s.slowest), s.next)
	_, possible = s.course.HandedOut(said.at+int64(skew), s.next)
	return sure, possible
}

// apart is how far the clocks of two processes may be apart.
func (l *Ledger) apart(o *Ledger) time.Duration {
	if l == o || l.Clock != "" && l.Clock == o.Clock {
		return 0
	}
	return ClockSkew
}

// leftovers is what the broker had for the group before the test: what it had before the group's first member came, without what the
// member's siblings had sent by then. Of what they sent in that second it is taken that those were there that were received: brokers give
// the oldest first.
func (w *wholeTopic) leftovers(shares []groupShare) (int64, error) {
	var first groupShare
	for _, s := range shares {
		if s.consumed() && (first.GroupLedger == nil || s.There[0].From < first.There[0].From) {
			first = s
		}
	}
	left := first.Leftovers
	for _, p := range w.producers {
		from := w.senders[p.ID]
		if left <= 0 || from.by == first.by { // its own it has not counted
			continue
		}
		skew := from.by.apart(first.by)
		sent, _ := from.course.HandedOut(first.There[0].From-int64(skew+from.slowest), from.next)
		_, perhaps := from.course.HandedOut(first.Looked+int64(skew), from.next)
		expected, err := track.Load(p.Expected)
		if err != nil {
			return 0, err
		}
		there := expected.Within([]track.Bounds{{From: 0, Until: sent}})
		for _, s := range shares {
			source := s.Source(p.ID)
			if source == nil {
				continue
			}
			received, err := track.Load(source.Received)
			if err != nil {
				return 0, err
			}
			there = there.Or(received.Within([]track.Bounds{{From: 0, Until: perhaps}}))
		}
		left -= int64(there.Len())
	}
	return max(0, left), nil
}
