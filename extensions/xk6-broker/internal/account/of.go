//gosec:disable G115 -- counts, far below their limits
package account

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// margin is how long before a consumer's going a message may have been sent that did not reach it
// in time.
const margin = int64(time.Second)

// Known is what is known of a test beside its ledgers.
type Known struct {
	Complete bool // the ledgers are those of all processes

	// Apart is by how much the clocks of two processes may differ at most. It is not called where
	// there is one process.
	Apart func(a, b *Ledger) time.Duration

	// Backlog asks the broker what it has for a group when all processes have ended. Nil asks
	// nobody, and then the last answer in the ledgers counts.
	Backlog func(broker, driver, topic, group string) (b Backlog, known bool, err error)
}

// Whole is the account of a test.
type Whole struct {
	Topics []TopicAccount
	Absent map[uint32]uint64 // messages received from processes whose ledgers are missing, by instance
}

// TopicAccount is the account of one topic. Of the messages that its consumers received of other
// processes, Routed were sent to a topic of another name, Aliased to a topic of this name at
// another address, and Absent by a process whose ledger is missing.
type TopicAccount struct {
	Broker, Driver, Topic   string // as the first ledger names them
	Groups                  []Account
	Routed, Aliased, Absent uint64
}

// Of computes the account of a test from the ledgers of its processes. An error is the broker's,
// when it is asked.
func Of(ledgers []*Ledger, known Known) (*Whole, error) {
	w := &whole{known: known, several: ambiguous(ledgers), ledgers: map[uint32]*Ledger{}, producers: map[uint64]producer{}, received: map[uint64][]reception{}}
	for _, l := range ledgers {
		w.ledgers[l.Instance] = l
		for i := range l.Topics {
			w.add(l, &l.Topics[i])
		}
	}
	all := &Whole{Absent: map[uint32]uint64{}}
	for _, t := range w.topics {
		a := TopicAccount{Broker: t.parts[0].Broker, Driver: t.parts[0].Driver, Topic: t.parts[0].Topic}
		w.classify(t, &a, all.Absent)
		all.Topics = append(all.Topics, a)
	}
	w.known.Complete = known.Complete && len(all.Absent) == 0
	for i, t := range w.topics {
		if err := w.account(t, &all.Topics[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// whole is the ledgers of all processes, by topic.
type whole struct {
	known     Known
	several   bool // topics are told apart by address too
	ledgers   map[uint32]*Ledger
	topics    []*topic
	producers map[uint64]producer
	received  map[uint64][]reception // of each producer, on the topics that it does not send to
}

// topicKey tells topics apart. Processes on different machines may know one broker by different
// addresses.
type topicKey struct{ broker, driver, name string }

type topic struct {
	key       topicKey
	parts     []*TopicLedger
	producers []producer
	names     []string // of the groups, in the order in which they were met
	groups    map[string][]share
	removals  []removal
}

type producer struct {
	*ProducerSnapshot
	by     *Ledger
	topic  *topic
	of     *TopicLedger
	course Course
}

// share is what one process knows of a group.
type share struct {
	*GroupLedger
	by *Ledger
}

// killed says whether a process with members of the group was killed.
func (g share) killed() bool { return g.joined() && g.by.Unfinished }

type removal struct {
	at int64
	by *Ledger
}

type reception struct {
	on      *topic
	numbers Set
}

func ambiguous(ledgers []*Ledger) bool {
	for _, l := range ledgers {
		seen := map[[2]string]bool{}
		for _, t := range l.Topics {
			key := [2]string{t.Driver, t.Topic}
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

func (w *whole) add(by *Ledger, l *TopicLedger) {
	key := topicKey{l.Broker, l.Driver, l.Topic}
	if !w.several {
		key.broker = ""
	}
	i := slices.IndexFunc(w.topics, func(t *topic) bool { return t.key == key })
	if i < 0 {
		i = len(w.topics)
		w.topics = append(w.topics, &topic{key: key, groups: map[string][]share{}})
	}
	t := w.topics[i]
	t.parts = append(t.parts, l)
	for k := range l.Producers {
		p := producer{&l.Producers[k], by, t, l, l.Courses[l.Producers[k].ID]}
		t.producers = append(t.producers, p)
		w.producers[p.ID] = p
	}
	for k := range l.Groups {
		g := &l.Groups[k]
		name := g.Name
		if g.Subscriber { // each is on its own
			name = fmt.Sprintf("%s of %08x", name, by.Instance)
		}
		if t.groups[name] == nil {
			t.names = append(t.names, name)
		}
		t.groups[name] = append(t.groups[name], share{g, by})
		for s := range g.Sources {
			if g.Sources[s].Foreign {
				w.received[g.Sources[s].ID] = append(w.received[g.Sources[s].ID], reception{t, g.Sources[s].Received})
			}
		}
	}
	for _, at := range l.Removed {
		t.removals = append(t.removals, removal{at, by})
	}
}

// classify counts what the topic's groups received of other processes' producers that are none of
// its own.
func (w *whole) classify(t *topic, a *TopicAccount, absent map[uint32]uint64) {
	for _, shares := range t.groups {
		for _, s := range shares {
			for i := range s.Sources {
				id, n := s.Sources[i].ID, s.Sources[i].Received.Len()
				from, known := w.producers[id]
				switch instance := uint32(id >> 32); {
				case n == 0 || instance == s.by.Instance || known && from.topic == t:
				case !known && w.ledgers[instance] == nil:
					absent[instance] += n
					a.Absent += n
				case known && from.topic.key.name == t.key.name:
					a.Aliased += n
				default:
					a.Routed += n
				}
			}
		}
	}
}

func (w *whole) account(t *topic, to *TopicAccount) error {
	slices.SortFunc(t.producers, func(a, b producer) int { return cmp.Compare(a.ID, b.ID) })
	var subscribers *Account
	slices.Sort(t.names)
	for _, name := range t.names {
		shares := t.groups[name]
		if !slices.ContainsFunc(shares, func(s share) bool { return s.joined() }) {
			continue // a process asked for its backlog, and nobody joined it
		}
		a, err := w.group(t, shares)
		if err != nil {
			return err
		}
		switch {
		case !shares[0].Subscriber:
			to.Groups = append(to.Groups, a)
		case subscribers == nil:
			a.Group, a.Subscribers = Subscribers, 1
			subscribers = &a
		default:
			subscribers.Join(a)
		}
	}
	if subscribers != nil {
		to.Groups = append(to.Groups, *subscribers)
	}
	return nil
}

// group gives the account of a group, or of one subscriber.
func (w *whole) group(t *topic, shares []share) (Account, error) {
	g := &groupCount{Account: Account{Group: shares[0].Name}, shares: shares}
	g.spent = t.spends() && t.comesAfterAnother(g.first())
	said, answered, err := w.answer(t, shares)
	if err != nil {
		return g.Account, err
	}
	for _, s := range shares {
		g.Duplicated += s.Tally.Duplicated
		g.Redelivered += s.Tally.Redelivered
		g.Reordered += s.Tally.Reordered
	}
	for _, p := range t.producers {
		w.producer(t, p, g, said)
	}
	for _, id := range sources(shares) {
		if w.producers[id].topic == t {
			continue
		}
		all := gather(id, shares, &g.Tally)
		g.Foreign += all.Received.Len()
		if len(t.removals) > 0 {
			all.Doubted = all.Received
		}
		g.hold(all)
	}
	g.Unexpected = g.unexpected()
	for _, part := range t.parts {
		g.unanswered += part.Unanswered
		g.waiting.Strange += part.Failed
		g.Unordered = g.Unordered || part.Unordered
	}
	if g.Unordered {
		g.Reordered = 0
	}
	g.waiting.Backlog = said.Backlog
	g.divide(answered)
	switch {
	case slices.ContainsFunc(shares, share.killed):
		g.doubtLost(Killed)
	case !w.known.Complete && !shares[0].Subscriber:
		g.doubtLost(MissingProcess)
	case slices.ContainsFunc(t.parts, func(l *TopicLedger) bool { return l.Selected }):
		g.doubtLost(OtherReader)
	}
	return g.Account, nil
}

func (t *topic) spends() bool {
	return slices.ContainsFunc(t.parts, func(l *TopicLedger) bool { return l.Spends })
}

// comesAfterAnother says whether another group was there before this one's first member.
func (t *topic) comesAfterAnother(first *share) bool {
	for _, shares := range t.groups {
		for _, s := range shares {
			if s.Name != first.Name && s.joined() && s.There[0].From < first.There[0].From {
				return true
			}
		}
	}
	return false
}

// groupCount is the account of a group while it is computed.
type groupCount struct {
	Account
	shares         []share
	spent          bool   // of what was sent before it came, the broker need not have kept everything
	rest           uint64 // missing, not routed and not uncertain for their own part
	sure, possible uint64 // of the rest: what the broker had been given when it was asked, at least and at most
	unanswered     uint64
	waiting        Waiting
}

// producer counts what became of the messages of one producer of the topic.
func (w *whole) producer(t *topic, p producer, g *groupCount, said answer) {
	all := gather(p.ID, g.shares, &g.Tally)
	possible, certain := w.spans(p, g.shares, g.spent)
	expected := p.Expected.Within(possible)
	drained := all.Drained.Within(possible).andNot(all.Received)
	missing := expected.andNot(all.Received).andNot(drained)
	g.Expected += expected.Len()
	g.Received += all.Received.Len()
	g.Drained += drained.Len()
	g.Settled += all.Settled.Len()
	g.Missing += missing.Len()
	below := w.removedBelow(t, p)
	all.Doubted = all.Doubted.Or(all.Received.below(below)) // the broker may have had what was held
	g.hold(all)
	if missing.Len() == 0 {
		return
	}
	here := missing
	for _, r := range w.received[p.ID] {
		if r.on != t {
			missing = missing.andNot(r.numbers)
		}
	}
	g.Routed += here.Len() - missing.Len()
	g.Ranges = missing.ranges(p.ID, g.Ranges, ShownRanges)
	missing = g.doubt(Removed, missing, missing.below(below))
	edge := missing.andNot(missing.Within(certain)).Or(missing.Within(w.partings(p, g.shares)))
	from := uint64(math.MaxUint64)
	for _, b := range certain {
		from = min(from, b.From)
	}
	missing = g.doubt(Joining, missing, edge.below(from))
	leaving := Leaving
	if slices.ContainsFunc(g.shares, share.killed) {
		leaving = Killed
	}
	missing = g.doubt(leaving, missing, edge.andNot(edge.below(from)))
	g.rest += missing.Len()
	sure, most := w.given(p, said)
	g.sure += missing.below(sure).Len()
	g.possible += missing.below(most).Len()
}

// doubt counts some of the missing messages as uncertain, and returns the others.
func (g *groupCount) doubt(why Why, missing, some Set) Set {
	n := some.Len()
	g.Doubt(why, n)
	g.waiting.Strange += int64(n) // the broker may have them
	return missing.andNot(some)
}

func (g *groupCount) hold(all SourceSnapshot) {
	held := all.Received.andNot(all.Settled).andNot(all.Cleared)
	g.waiting.Held += int64(held.Len())
	g.waiting.SureHeld += int64(held.andNot(all.Doubted).Len())
}

// first is the share of the group's first member.
func (g *groupCount) first() (first *share) {
	for i, s := range g.shares {
		if s.joined() && (first == nil || s.There[0].From < first.There[0].From) {
			first = &g.shares[i]
		}
	}
	return first
}

// divide says what became of the rest by what the broker said that it has.
func (g *groupCount) divide(answered bool) {
	interrupted := min(g.rest, g.unanswered)
	if !g.shares[0].Kept {
		if slices.ContainsFunc(g.shares, func(s share) bool { return s.Cut }) {
			g.Doubt(Leaving, g.rest)
			return
		}
		g.Lost = g.rest - interrupted
		g.Doubt(Interrupted, interrupted)
		return
	}
	if !answered {
		g.Doubt(NoBacklog, g.rest)
		return
	}
	strangers := int64(0)
	for _, s := range g.shares {
		strangers += s.Strangers
		g.waiting.SureHeld += s.SureHeld
		g.waiting.Held += s.GroupLedger.Held
	}
	g.waiting.Strange += max(0, g.first().Leftovers-strangers)
	var uncertain uint64
	g.Lost, g.Undelivered, uncertain = Divide(g.rest, g.sure-min(g.sure, interrupted), g.possible, g.waiting)
	interrupted = min(uncertain, interrupted)
	g.Doubt(Interrupted, interrupted)
	g.Doubt(NoBacklog, uncertain-interrupted)
}

// doubtLost says that what seems to be lost need not be.
func (g *groupCount) doubtLost(why Why) {
	g.Doubt(why, g.Lost)
	g.Lost = 0
}

// removedBelow is below which of the producer's numbers the test may have removed messages from the
// broker.
func (w *whole) removedBelow(t *topic, p producer) (below uint64) {
	for _, r := range t.removals {
		at := r.at
		if r.by != p.by {
			at += w.apart(r.by, p.by) + margin
		}
		_, most := p.course.HandedOut(at, p.Next)
		below = max(below, most)
	}
	return below
}

// apart is by how much the clocks of two processes may differ, in ns.
func (w *whole) apart(a, b *Ledger) int64 {
	if a == b || a.Clock != "" && a.Clock == b.Clock {
		return 0
	}
	return int64(w.known.Apart(a, b))
}

// partings is what was on its way to members that left while others stayed, perhaps.
func (w *whole) partings(p producer, shares []share) (all []Bounds) {
	for _, g := range shares {
		apart := w.apart(p.by, g.by)
		for _, parting := range g.Partings {
			from, _ := p.course.HandedOut(parting.From-margin-apart-p.of.Slowest, p.Next)
			_, until := p.course.HandedOut(parting.Until+apart+1, p.Next)
			all = append(all, Bounds{from, until})
		}
	}
	return all
}

// spans is what a group expects of a producer: what it may, and of that what it does for certain.
func (w *whole) spans(p producer, shares []share, spent bool) (possible, certain []Bounds) {
	for _, g := range shares {
		may, does := g.spans(p, w.apart(p.by, g.by), spent)
		possible, certain = append(possible, may...), append(certain, does...)
	}
	return possible, certain
}

// spans is the same of the members in one process. Of its own producers the process knows the
// numbers; of others they are computed from times, between clocks that are so far apart.
func (g share) spans(p producer, apart int64, spent bool) (possible, certain []Bounds) {
	handedOut := func(at int64) (least, most uint64) { return p.course.HandedOut(at, p.Next) }
	gone := margin + apart + p.of.Slowest // before it left, for what was certain to reach it
	if s := g.Source(p.ID); s != nil && !s.Foreign {
		possible, certain = s.Spans, slices.Clone(s.Spans)
		for i := range min(len(certain), len(g.There)) { // a producer that came later has none of the first
			there, span := g.There[len(g.There)-1-i], &certain[len(certain)-1-i]
			if there.Until != math.MaxInt64 && !g.Kept {
				sure, _ := handedOut(there.Until - gone)
				span.Until = min(span.Until, sure)
			}
		}
		if spent && len(certain) > 0 && g.joined() {
			_, from := handedOut(g.There[0].From)
			certain[0].From = max(certain[0].From, from)
		}
		return possible, certain
	}
	for i, there := range g.There {
		may, does := Everything()[0], Everything()[0]
		if i > 0 || !g.Earliest {
			may.From, _ = handedOut(there.From - apart)
			_, does.From = handedOut(there.From + apart)
		} else if spent {
			_, does.From = handedOut(there.From + apart)
		}
		if g.Kept { // it is there from its first member on
			return []Bounds{may}, []Bounds{does}
		}
		switch {
		case there.Until != math.MaxInt64:
			_, may.Until = handedOut(there.Until + apart + 1)
			does.Until, _ = handedOut(there.Until - gone)
		case g.by.Unfinished: // for how much longer it was there is not known
			does.Until, _ = handedOut(g.by.Ended - gone)
		}
		possible, certain = append(possible, may), append(certain, does)
	}
	return possible, certain
}

// answer is what a broker said that it has for a group, when, and to whom.
type answer struct {
	Backlog
	at int64
	by *Ledger // nil if it was asked when all processes had ended
}

// answer is the broker's last word on a group. There is none if a process read on after that.
func (w *whole) answer(t *topic, shares []share) (last answer, ok bool, err error) {
	if !shares[0].Kept {
		return answer{}, false, nil
	}
	if w.known.Backlog != nil {
		b, known, err := w.known.Backlog(t.parts[0].Broker, t.key.driver, t.key.name, shares[0].Name)
		if err != nil || known {
			return answer{Backlog: b}, known, err
		}
	}
	for _, s := range shares {
		if s.Asked > last.at {
			last = answer{s.Backlog, s.Asked, s.by}
		}
	}
	if last.by == nil {
		return answer{}, false, nil
	}
	for _, s := range shares {
		until := min(s.gone(), s.by.Ended)
		if s.drained() {
			until = s.by.Ended
		}
		if s.joined() && s.by != last.by && until >= last.at+w.apart(s.by, last.by) {
			return answer{}, false, nil
		}
	}
	return last, true, nil
}

// given is which of a producer's messages the broker had been given when it was asked: those below
// sure for certain, and none from possible on.
func (w *whole) given(p producer, said answer) (sure, possible uint64) {
	if said.by == nil || said.by == p.by { // a process asks when its producers are done
		return math.MaxUint64, math.MaxUint64
	}
	apart := w.apart(p.by, said.by)
	sure, _ = p.course.HandedOut(said.at-apart-p.of.Slowest, p.Next)
	_, possible = p.course.HandedOut(said.at+apart, p.Next)
	return sure, possible
}

// gather joins what the processes received of one producer, and counts the copies that crossed from
// one to another: Duplicated if both settled them, else Redelivered, unless the broker's own count
// of deliveries has made them that.
func gather(id uint64, shares []share, t *Tally) (all SourceSnapshot) {
	for _, s := range shares {
		from := s.Source(id)
		if from == nil {
			continue
		}
		copies := all.Received.and(from.Received)
		twice := copies.and(all.Settled).and(from.Settled)
		t.Duplicated += twice.Len()
		t.Redelivered += copies.andNot(twice).andNot(all.Again.Or(from.Again)).Len()
		all.Received = all.Received.Or(from.Received)
		all.Settled = all.Settled.Or(from.Settled)
		all.Again = all.Again.Or(from.Again)
		all.Drained = all.Drained.Or(from.Drained)
		all.Cleared = all.Cleared.Or(from.Cleared)
		all.Doubted = all.Doubted.Or(from.Doubted).Or(copies)
	}
	return all
}

// sources lists the producers of which a group received something, ascending.
func sources(shares []share) (ids []uint64) {
	for _, s := range shares {
		for i := range s.Sources {
			ids = append(ids, s.Sources[i].ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
