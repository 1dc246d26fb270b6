//gosec:disable G115 -- counts, far below their limits
package account

import "slices"

// groupAccount is the account of a group, or of one subscriber, while it is computed.
type groupAccount struct {
	Account
	members []member
	open    uint64 // missing messages whose fate only the broker's backlog can decide
	held    uint64 // received and not settled
	other   int64  // messages of the backlog that need not be among the open: at most
	crossed bool   // copies of a message came to two processes
}

// account computes the account of a group.
func (t *test) account(at *topic, members []member) Account {
	g := &groupAccount{Account: Account{Group: members[0].Name}, members: members}
	backlog, exact := t.backlog(at, members)
	for _, m := range members {
		g.Duplicated += m.Tally.Duplicated
		g.Redelivered += m.Tally.Redelivered
		g.Reordered += m.Tally.Reordered
	}
	for _, p := range at.producers {
		t.addProducer(g, at, p)
	}
	for _, id := range sources(members) {
		if t.producers[id].topic != at {
			g.Foreign += g.gather(id).Received.Len()
		}
	}
	g.Unexpected = g.unexpected()
	removed := false
	for _, p := range at.parts {
		g.other += p.Failed
		g.Unordered = g.Unordered || p.Unordered
		removed = removed || len(p.Removed) > 0
	}
	if g.Unordered {
		g.Reordered = 0
	}
	g.decide(backlog, exact, removed)
	switch {
	case slices.ContainsFunc(members, member.killed):
		g.doubtLost(Killed)
	case !t.options.Complete && !members[0].Subscriber:
		g.doubtLost(MissingProcess)
	case at.selected(firstMember(members)):
		g.doubtLost(OtherReader)
	}
	return g.Account
}

// selected reports whether messages that a group expects may have gone to others only.
func (at *topic) selected(first member) bool {
	others := false
	for _, members := range at.groups {
		for _, m := range members {
			others = others || m.Name != first.Name && m.joined()
		}
	}
	return slices.ContainsFunc(at.parts, func(p part) bool {
		return p.Selected || p.Spends && first.Earliest && others
	})
}

// addProducer adds the fates of a producer's messages.
func (t *test) addProducer(g *groupAccount, at *topic, p producer) {
	s := g.gather(p.ID)
	possible, joining := t.expects(p, g.members)
	expected := p.Expected.within(possible)
	drained := s.Drained.within(possible).andNot(s.Received)
	missing := expected.andNot(s.Received).andNot(drained)
	g.Expected += expected.Len()
	g.Received += s.Received.Len()
	g.Drained += drained.Len()
	g.Settled += s.Settled.Len()
	g.Missing += missing.Len()
	if missing.Len() == 0 {
		return
	}
	for _, r := range t.elsewhere[p.ID] {
		if r.topic != at {
			here := missing.andNot(r.numbers)
			g.Routed += missing.Len() - here.Len()
			missing = here
		}
	}
	g.Ranges = missing.ranges(p.ID, g.Ranges, ShownRanges)
	leaving := Leaving
	if slices.ContainsFunc(g.members, member.killed) {
		leaving = Killed
	}
	missing = g.doubt(Removed, missing, []Bounds{{0, t.removedBelow(at, p)}})
	missing = g.doubt(Joining, missing, joining)
	missing = g.doubt(leaving, missing, t.leaving(p, g.members))
	g.open += missing.Len()
}

// doubt counts the missing messages of some ranges as uncertain, and returns the others.
func (g *groupAccount) doubt(why Why, missing Set, ranges []Bounds) Set {
	some := missing.within(ranges)
	g.Doubt(why, some.Len())
	g.other += int64(some.Len()) // the broker may have them
	return missing.andNot(some)
}

// gather joins the messages that the processes received of one producer, and counts the copies that
// came to two of them: Duplicated if both settled them, else Redelivered, unless the broker's count
// of deliveries made them that.
func (g *groupAccount) gather(id uint64) (all SourceSnapshot) {
	for _, m := range g.members {
		s := m.source(id)
		if s == nil {
			continue
		}
		copies := all.Received.and(s.Received)
		twice := copies.and(all.Settled).and(s.Settled)
		g.crossed = g.crossed || copies.Len() > 0
		g.Duplicated += twice.Len()
		g.Redelivered += copies.andNot(twice).andNot(all.Again.or(s.Again)).Len()
		all.Received = all.Received.or(s.Received)
		all.Settled = all.Settled.or(s.Settled)
		all.Again = all.Again.or(s.Again)
		all.Drained = all.Drained.or(s.Drained)
	}
	g.held += all.Received.andNot(all.Settled).andNot(all.Drained).Len()
	return all
}

// decide divides the open messages into lost, undelivered and uncertain ones.
func (g *groupAccount) decide(b Backlog, exact, removed bool) {
	switch first := firstMember(g.members); {
	case !first.Kept && slices.ContainsFunc(g.members, func(m member) bool { return m.Cut }):
		g.Doubt(Leaving, g.open)
	case !first.Kept:
		g.Lost = g.open
	case !exact:
		g.Doubt(NoBacklog, g.open)
	default:
		least, most := g.inBacklog(removed)
		g.Lost, g.Undelivered = b.divide(g.open, least, most, g.other+first.Leftovers)
		g.Doubt(NoBacklog, g.open-g.Lost-g.Undelivered)
	}
}

// inBacklog returns the least and the most received messages that are in the backlog. Messages that
// were requeued, redelivered or removed need not be.
func (g *groupAccount) inBacklog(removed bool) (least, most int64) {
	most = int64(g.held)
	doubtful := removed || g.crossed || g.Redelivered > 0
	for _, m := range g.members {
		most += m.Held
		doubtful = doubtful || m.Doubtful
	}
	if doubtful {
		return 0, most
	}
	return most, most
}

// doubtLost makes the lost messages uncertain.
func (g *groupAccount) doubtLost(why Why) {
	g.Doubt(why, g.Lost)
	g.Lost = 0
}

// sources lists the producers that a group received something of, ascending.
func sources(members []member) (ids []uint64) {
	for _, m := range members {
		for i := range m.Sources {
			ids = append(ids, m.Sources[i].ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
