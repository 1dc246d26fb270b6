//gosec:disable G115 -- counts, far below their limits
package result

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// wholeTopic is what the ledgers of all processes know of one topic.
type wholeTopic struct {
	id        topicID
	skews     map[[2]*Ledger]int64 // by which the clocks of processes may differ, where they were compared
	producers []track.ProducerSnapshot
	senders   map[uint64]sender // by producer
	groups    map[string][]groupShare
	removals  []removal
	spends    bool // what a group settles is not kept for others that come later
	failed    int64
	transit   time.Duration   // the longest that a message was on its way to a consumer
	heard     map[uint32]bool // of which processes anything came to anybody, by instance
	routed    bool            // some of its messages went where their keys said
	// elsewhere tells that what is missing may have been received by somebody whose ledger is not here, or not of this topic.
	elsewhere bool
}

// sender is what is known of a producer besides its numbers.
type sender struct {
	by      *Ledger // of its process
	topic   *wholeTopic
	next    uint64 // how many numbers it handed out
	course  Course
	slowest time.Duration // the longest that a send to the topic took, from its number to its confirmation
	proven  bool          // when it is confirmed, the broker has it
}

// groupShare is what one process knows of a group.
type groupShare struct {
	*GroupLedger
	by      *Ledger       // of the process
	slowest time.Duration // the longest that a message of the topic took until a consumer of the process had it
	over    int64         // when the consumers of its topic were told there that nothing more would come, ns since the Unix epoch; 0 where they were not
}

// account puts the ledgers together.
func (m *merger) account() error {
	topics, skews := make([]*wholeTopic, len(m.result.Topics)), m.skews()
	senders := map[uint64]sender{}
	for i := range topics {
		topics[i] = m.gather(m.result.Topics[i].Broker, m.result.Topics[i].Driver, m.result.Topics[i].Topic)
		topics[i].skews = skews
		maps.Copy(senders, topics[i].senders)
	}
	m.absent, m.since = map[uint32]uint64{}, map[int]string{}
	for i, p := range m.parts {
		if p.Ledger.Unfinished {
			var err error
			if m.since[i], err = m.sentSince(p); err != nil {
				return err
			}
		}
	}
	for i, w := range topics {
		m.strangers(&m.result.Topics[i], w, senders)
	}
	for i, w := range topics {
		if err := m.groups(&m.result.Topics[i], w); err != nil {
			return err
		}
	}
	return nil
}

// skew is by how much the clocks of two processes may differ, in ns. Those that were not compared are taken to agree.
func (w *wholeTopic) skew(a, b *Ledger) int64 {
	if a.Clock != "" && a.Clock == b.Clock {
		return 0
	}
	return w.skews[[2]*Ledger{a, b}]
}

// skews is by how much the clocks of processes may differ that were compared.
func (m *merger) skews() map[[2]*Ledger]int64 {
	all := map[[2]*Ledger]int64{}
	for pair, c := range m.clocks() {
		a, b := m.parts[pair[0]].Ledger, m.parts[pair[1]].Ledger
		all[[2]*Ledger{a, b}], all[[2]*Ledger{b, a}] = c.apart(), c.apart()
	}
	return all
}

// gather finds what the ledgers say of a topic.
func (m *merger) gather(broker, driver, topic string) *wholeTopic {
	w := &wholeTopic{id: m.key(broker, driver, topic), senders: map[uint64]sender{}, groups: map[string][]groupShare{}, heard: map[uint32]bool{}}
	agreed := map[string]map[*Ledger]Agreed{} // by call
	for n, p := range m.parts {
		for k := range p.Ledger.Topics {
			l := &p.Ledger.Topics[k]
			if m.key(l.Broker, l.Driver, l.Topic) != w.id {
				continue
			}
			for _, a := range l.Agreed {
				if agreed[a.Call] == nil {
					agreed[a.Call] = map[*Ledger]Agreed{}
				}
				agreed[a.Call][p.Ledger] = a
			}
			w.producers = append(w.producers, l.Producers...)
			w.failed += l.Failed
			w.routed = w.routed || l.Routed
			w.spends = w.spends || l.Spends
			sent, received := p.Result.slowest(l.Broker, l.Topic, metric.PublishTime, metric.RequestTime), p.Result.slowest(l.Broker, l.Topic, metric.E2ELatency)
			w.transit = max(w.transit, p.Result.slowest(l.Broker, l.Topic, metric.E2ETime))
			proven := p.Result.proven(l.Broker, l.Topic)
			for _, producer := range l.Producers {
				w.senders[producer.ID] = sender{by: p.Ledger, topic: w, next: producer.Next, course: l.Courses[producer.ID], slowest: sent, proven: proven}
			}
			for g := range l.Groups {
				for _, s := range l.Groups[g].Sources {
					w.heard[uint32(s.ID>>32)] = w.heard[uint32(s.ID>>32)] || track.Count(s.Received)+track.Count(s.Drained) > 0
				}
				name := l.Groups[g].Name
				if l.Groups[g].Subscriber {
					name = fmt.Sprintf("process %d, %s", n+1, name)
				}
				w.groups[name] = append(w.groups[name], groupShare{&l.Groups[g], p.Ledger, received, l.Over})
			}
		}
	}
	for _, p := range m.parts {
		for k := range p.Ledger.Topics {
			if l := &p.Ledger.Topics[k]; m.key(l.Broker, l.Driver, l.Topic) == w.id {
				w.removals = append(w.removals, removalsIn(l, p.Ledger, agreed)...)
			}
		}
	}
	return w
}

// slowest is the longest that some trends of a topic have.
func (r *Result) slowest(broker, topic string, trends ...metric.Trend) time.Duration {
	var longest int64
	for _, t := range r.Topics {
		if t.Broker != broker || t.Topic != topic {
			continue
		}
		for _, trend := range trends {
			for _, name := range []string{trend.String(), trend.String() + metric.ClosedSuffix} {
				if h := t.Trends[name]; h != nil {
					longest = max(longest, h.Max())
				}
			}
		}
	}
	return time.Duration(longest)
}

// proven tells whether a broker has what it confirmed of a topic.
func (r *Result) proven(broker, topic string) bool {
	return slices.ContainsFunc(r.Topics, func(t Topic) bool {
		return t.Broker == broker && t.Topic == topic && slices.Index(confirms, t.Confirm) > 0
	})
}

// strangers looks at what the topic's groups received of producers that are none of the topic's. Each process has counted those of its
// own; of those of others it could not know what they are.
func (m *merger) strangers(t *Topic, w *wholeTopic, senders map[uint64]sender) {
	var absent, routed, aliased uint64
	for _, shares := range w.groups {
		for _, s := range shares {
			for i := range s.Sources {
				id := s.Sources[i].ID
				if _, own := w.senders[id]; own {
					continue
				}
				n := track.Count(s.Sources[i].Received)
				from, known := senders[id]
				elsewhere := uint32(id>>32) != s.by.Instance
				switch {
				case n == 0:
				case !known && elsewhere:
					m.absent[uint32(id>>32)] += n
					absent += n
				case known && from.topic.id.name == w.id.name:
					from.topic.elsewhere = true
					if elsewhere {
						aliased += n
					}
				case elsewhere:
					routed += n
				}
			}
		}
	}
	delete(t.Counts, metric.Sibling.String()) // they are siblings no more
	for counter, n := range map[metric.Counter]uint64{metric.Sibling: absent, metric.Routed: routed, metric.Aliased: aliased} {
		if n > 0 {
			t.Counts[counter.String()] += int64(n)
		}
	}
	if absent == 0 {
		for _, w := range t.Phases {
			delete(w.Counts, metric.Sibling.String())
		}
		for _, p := range t.History {
			delete(p.Counts, metric.Sibling.String())
		}
		// Those that were sent long before the receiving process began were of this test all the same.
		t.Before = t.Counts[metric.Earlier.String()]
		delete(t.Counts, metric.Earlier.String())
	}
}

// complete tells whether all processes of the test are here, for certain.
func (m *merger) complete() bool { return len(m.parts) == m.processes && len(m.absent) == 0 }

// groups gives the result the accounts of the topic's groups.
func (m *merger) groups(t *Topic, w *wholeTopic) error {
	unmeasured := w.unmeasured(t)
	for _, name := range slices.Sorted(maps.Keys(w.groups)) {
		shares := w.groups[name]
		if !slices.ContainsFunc(shares, groupShare.consumed) {
			continue // the group was announced, and nobody joined it
		}
		said, err := m.asked(t, name, shares)
		if err != nil {
			return err
		}
		a, err := w.group(name, shares, said)
		if err != nil {
			return err
		}
		untold := a.Elsewhere // nobody but the one who was killed could have measured them
		if !shares[0].Subscriber {
			if w.elsewhere || !m.complete() {
				a.Lost, a.Elsewhere = 0, a.Elsewhere+a.Lost
			}
			if w.elsewhere || !m.complete() || slices.ContainsFunc(shares, groupShare.untold) { // what was removed another process may have received before
				a.Missing, a.Uncertain, a.Removed = a.Missing+a.Removed, a.Uncertain+a.Removed, 0
			}
			g := t.group(name)
			g.Unmeasured = unmeasured[name] + untold
			g.Account, g.Kept = a, !slices.ContainsFunc(shares, func(s groupShare) bool { return !s.Kept || s.Unheld && !s.Again })
			continue
		}
		a.Group = Subscribers
		g := t.group(Subscribers)
		if g.Subscribers == 0 {
			a.Subscribers = 1
			g.Account, g.Unmeasured = a, unmeasured[Subscribers]
		} else {
			g.Join(a)
		}
		g.Unmeasured += untold
	}
	return nil
}

// unmeasured is how many messages each group received, as the ledgers know, beyond those that the results have measured: what a process writes
// while it goes on may not be of one instant.
func (w *wholeTopic) unmeasured(t *Topic) map[string]uint64 {
	known := map[string]uint64{}
	for name, shares := range w.groups {
		if shares[0].Subscriber {
			name = Subscribers
		}
		for _, s := range shares {
			known[name] += s.Tally.Received + s.Tally.Foreign
		}
	}
	for _, g := range t.Groups {
		known[g.Group] -= min(known[g.Group], g.told)
	}
	return known
}

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

// verdict adds what only the whole can tell, and what the processes had to say of themselves. The thresholds of one are none of all
// together.
func (m *merger) verdict() {
	v := &m.result.Verdict
	m.missing(v)
	for _, flaw := range processFlaws(m.parts) {
		v.because(latencies|account, "%s", flaw)
	}
	judgeRepeated(v, m.parts)
	for i, p := range m.parts {
		if !p.Ledger.Unfinished { // else what it says of a test that went on is nothing of the whole
			continue
		}
		name, since := m.teller(i, 1), m.since[i]
		if !m.known.Killed {
			v.because(latencies|account, "%s was killed: the test ended before its time", name)
		}
		v.note("%s was killed: what it found out after %s, %v after its start, when it wrote its results for the last time, is not known%s; what it had received and "+
			"not acknowledged counts only where it came again", name, instant(p.Ended()), p.Ended().Sub(p.Result.Started).Round(100*time.Millisecond), since)
	}
	m.reasons(v)
	if m.diverged {
		v.note("the processes had different phases, so that the whole has none")
	}
	m.notes(v)
	m.doubts(v)
	switch {
	case !m.askedLate && slices.ContainsFunc(m.result.Topics, func(t Topic) bool { return slices.ContainsFunc(t.Groups, doubted) }):
		v.note("what is uncertain the broker may still tell: ask it with --broker URL")
	case m.askedLate:
		v.note("what the brokers had was asked at %s, when all processes had ended, and is taken for what they had at the end of the last, at %s",
			instant(time.Now()), instant(m.result.Started.Add(time.Duration(m.result.Seconds*float64(time.Second)))))
	}
	for _, i := range slices.Sorted(maps.Keys(m.unlogged)) {
		v.note("over time, quantiles are those of the process that had the worst, and there is no .hlog, of what %s measured too: %v", m.teller(i, 1), m.unlogged[i])
	}
	if len(m.parts) > 1 && (m.uncompared || len(m.result.Clocks) == 0) {
		v.note("of %d processes: latencies between them are by the clocks of their machines, which were not compared", len(m.parts))
	}
}

// sentSince says how many messages others received that a process sent after it had written its results: so much it went on.
func (m *merger) sentSince(p Part) (string, error) {
	later := map[uint64]track.Set{} // by producer, as several groups may have received one message
	for _, producer := range p.Ledger.producers() {
		for _, other := range m.parts {
			for _, s := range other.Ledger.sources(producer.ID) {
				received, err := track.Load(s.Received)
				if err != nil {
					return "", err
				}
				later[producer.ID] = later[producer.ID].Or(received.Within([]track.Bounds{{From: producer.Next, Until: math.MaxUint64}}))
			}
		}
	}
	var n uint64
	for _, numbers := range later {
		n += numbers.Len()
	}
	if n == 0 {
		return "", nil
	}
	return fmt.Sprintf(", and others received %d messages that it sent after that", n), nil
}

func doubted(g Group) bool { return g.Uncertain > 0 }

// peer is what a process is called that others met; "" for one that none has met.
func (m *merger) peer(instance uint32) string {
	for _, p := range m.parts {
		for _, of := range p.Result.Peers {
			if of.Instance == instance {
				return called(of.Process, of.Name)
			}
		}
	}
	return ""
}

// missing says which processes are not here, as far as that is known.
func (m *merger) missing(v *Verdict) {
	if here := len(m.parts); m.processes > here {
		which := ""
		if len(m.known.Absent) > 0 {
			which = " (" + strings.Join(m.known.Absent, ", ") + ")"
		}
		v.because(latencies|account, "%d of the %d processes of the test are missing%s: merge their results too", m.processes-here, m.processes, which)
	}
	for _, instance := range slices.Sorted(maps.Keys(m.absent)) {
		if name := m.peer(instance); name != "" {
			v.because(latencies|account, "a process is missing: %d messages came from %s, instance %d, whose result is none of these; merge it too: one that was killed "+
				"leaves what it had written meanwhile, with BROKER_REPORT_MEANWHILE", m.absent[instance], name, instance)
			continue
		}
		v.because(latencies|account, "a process is missing: %d messages came from instance %d, whose result is none of these; "+
			"merge it too, or, if it was an earlier test, give each test a BROKER_RUN of its own", m.absent[instance], instance)
	}
	if m.processes != 0 {
		return
	}
	text := fmt.Sprintf("that these %d processes are all of the test is not known: if they are, say so with --processes %d, or give each of them "+
		"BROKER_PROCESSES=%d", len(m.parts), len(m.parts), len(m.parts))
	for _, t := range m.result.Topics {
		if slices.ContainsFunc(t.Groups, func(g Group) bool { return g.Elsewhere > 0 }) {
			v.because(account, "%s", text)
			return
		}
	}
	v.note("%s", text)
}
