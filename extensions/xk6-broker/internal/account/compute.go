//gosec:disable G115 -- counts, far below their limits
package account

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Options are facts about a test beside its ledgers.
type Options struct {
	Complete bool // the ledgers of all processes are there
	// ClockGap returns how far the clocks of two processes may differ. It is not called for one
	// clock.
	ClockGap func(a, b *Ledger) time.Duration
}

// Accounts are the accounts of a test.
type Accounts struct {
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

// Compute returns the accounts of a test from the ledgers of its processes.
func Compute(ledgers []*Ledger, o Options) *Accounts {
	t := newTest(ledgers, o)
	all := &Accounts{Absent: map[uint32]uint64{}}
	for _, topic := range t.topics {
		all.Topics = append(all.Topics, t.origins(topic, all.Absent))
	}
	t.options.Complete = o.Complete && len(all.Absent) == 0
	for i, topic := range t.topics {
		all.Topics[i].Groups = t.accounts(topic)
	}
	return all
}

// test is the ledgers of all processes, by topic.
type test struct {
	options   Options
	byAddress bool               // topics of one name at two addresses are two topics
	ledgers   map[uint32]*Ledger // by instance
	topics    []*topic
	producers map[uint64]producer
	elsewhere map[uint64][]reception // by producer: receptions on topics that it does not send to
}

// topicKey identifies a topic. Its broker is empty if processes may use different addresses of one.
type topicKey struct{ broker, driver, name string }

type topic struct {
	key       topicKey
	parts     []part
	producers []producer
	groups    map[string][]member
}

type producer struct {
	*ProducerSnapshot
	process *Ledger
	topic   *topic
	slowest int64 // ns that a send of its process took at most
}

// sentBefore returns the least and the most messages that were sent right before an instant.
func (p producer) sentBefore(at int64) (least, most uint64) { return p.Course.handedOut(at, p.Next) }

// member is a group's ledger of one process.
type member struct {
	*GroupLedger
	process *Ledger
}

// killed reports whether the process was killed while it may have had members of the group.
func (m member) killed() bool { return m.joined() && m.process.Unfinished }

// part is a topic's ledger of one process.
type part struct {
	*TopicLedger
	process *Ledger
}

type reception struct {
	topic   *topic
	numbers Set
}

func newTest(ledgers []*Ledger, o Options) *test {
	t := &test{
		options: o, byAddress: severalAddresses(ledgers), ledgers: map[uint32]*Ledger{},
		producers: map[uint64]producer{}, elsewhere: map[uint64][]reception{},
	}
	for _, l := range ledgers {
		t.ledgers[l.Instance] = l
		for i := range l.Topics {
			t.add(l, &l.Topics[i])
		}
	}
	return t
}

// severalAddresses reports whether a process has one topic at two addresses.
func severalAddresses(ledgers []*Ledger) bool {
	for _, l := range ledgers {
		seen := map[topicKey]bool{}
		for _, t := range l.Topics {
			key := topicKey{"", t.Driver, t.Topic}
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

// add adds the ledger that a process has of a topic.
func (t *test) add(process *Ledger, l *TopicLedger) {
	to := t.topic(l)
	to.parts = append(to.parts, part{l, process})
	for i := range l.Producers {
		p := producer{&l.Producers[i], process, to, l.Slowest}
		to.producers = append(to.producers, p)
		t.producers[p.ID] = p
	}
	for i := range l.Groups {
		g := &l.Groups[i]
		name := g.Name
		if g.Subscriber { // each has an account
			name = fmt.Sprintf("%s of %08x", name, process.Instance)
		}
		to.groups[name] = append(to.groups[name], member{g, process})
		for _, s := range g.Sources {
			if s.Foreign {
				t.elsewhere[s.ID] = append(t.elsewhere[s.ID], reception{to, s.Received})
			}
		}
	}
}

// topic finds or makes the topic of a ledger.
func (t *test) topic(l *TopicLedger) *topic {
	key := topicKey{l.Broker, l.Driver, l.Topic}
	if !t.byAddress {
		key.broker = ""
	}
	for _, found := range t.topics {
		if found.key == key {
			return found
		}
	}
	to := &topic{key: key, groups: map[string][]member{}}
	t.topics = append(t.topics, to)
	return to
}

// origins counts the messages that the topic's groups received of other processes' producers of
// other topics.
func (t *test) origins(at *topic, absent map[uint32]uint64) TopicAccount {
	first := at.parts[0]
	a := TopicAccount{Broker: first.Broker, Driver: first.Driver, Topic: first.Topic}
	for _, members := range at.groups {
		for _, m := range members {
			for _, s := range m.Sources {
				n, instance := s.Received.Len(), uint32(s.ID>>32)
				from, found := t.producers[s.ID]
				switch {
				case n == 0 || instance == m.process.Instance || found && from.topic == at:
				case !found && t.ledgers[instance] == nil:
					absent[instance] += n
					a.Absent += n
				case found && from.topic.key.name == at.key.name:
					a.Aliased += n
				default:
					a.Routed += n
				}
			}
		}
	}
	return a
}

// accounts returns the accounts of a topic's groups, and one of all its subscribers.
func (t *test) accounts(at *topic) (all []Account) {
	slices.SortFunc(at.producers, func(a, b producer) int { return cmp.Compare(a.ID, b.ID) })
	var subscribers *Account
	for _, name := range slices.Sorted(maps.Keys(at.groups)) {
		members := at.groups[name]
		if !slices.ContainsFunc(members, func(m member) bool { return m.joined() }) {
			continue // a process asked for its backlog, and no consumer joined it
		}
		a := t.account(at, members)
		switch {
		case !members[0].Subscriber:
			all = append(all, a)
		case subscribers == nil:
			a.Group, a.Subscribers = Subscribers, 1
			subscribers = &a
		default:
			subscribers.Join(a)
		}
	}
	if subscribers != nil {
		all = append(all, *subscribers)
	}
	return all
}

// clockGap returns by how much the clocks of two processes may differ, in ns.
func (t *test) clockGap(a, b *Ledger) int64 {
	if a == b || a.Clock != "" && a.Clock == b.Clock {
		return 0
	}
	return int64(t.options.ClockGap(a, b))
}

// expects returns the messages that a group may expect of a producer, and the ones that were sent
// when members came, within the error of the clocks. A process has the exact numbers of its own
// producers. A group whose messages are kept is there from its first member on.
func (t *test) expects(p producer, members []member) (possible, joining []Bounds) {
	if first := firstMember(members); first.Kept {
		members = []member{first}
	}
	for _, m := range members {
		if p.process == m.process {
			if s := m.source(p.ID); s != nil {
				possible = append(possible, s.Spans...)
			}
			continue
		}
		gap := t.clockGap(p.process, m.process)
		for i, there := range m.There {
			b := Bounds{0, math.MaxUint64}
			if i > 0 || !m.Earliest {
				b.From, _ = p.sentBefore(there.From - gap)
				_, until := p.sentBefore(there.From + gap)
				joining = append(joining, Bounds{b.From, until})
			}
			if !m.Kept && there.Until != math.MaxInt64 {
				_, b.Until = p.sentBefore(there.Until + gap + 1)
			}
			possible = append(possible, b)
			if m.Kept {
				break
			}
		}
	}
	return possible, joining
}

// margin is how long before a consumer's going a message may have been sent that it did not get.
const margin = int64(time.Second)

// leaving returns the messages that may have been on their way to members that left, if the broker
// keeps nothing.
func (t *test) leaving(p producer, members []member) (all []Bounds) {
	for _, m := range members {
		gap := t.clockGap(p.process, m.process)
		before := margin + gap + p.slowest
		for _, left := range m.Left {
			from, _ := p.sentBefore(left.From - before)
			_, until := p.sentBefore(left.Until + gap + 1)
			all = append(all, Bounds{from, until})
		}
		if m.killed() && !m.Kept { // when it ended is not known
			from, _ := p.sentBefore(m.process.Ended - before)
			all = append(all, Bounds{from, math.MaxUint64})
		}
	}
	return all
}

// removedBelow returns the number below which the test may have removed the producer's messages.
func (t *test) removedBelow(at *topic, p producer) (below uint64) {
	for _, part := range at.parts {
		for _, instant := range part.Removed {
			if part.process != p.process {
				instant += t.clockGap(part.process, p.process) + margin
			}
			_, most := p.sentBefore(instant)
			below = max(below, most)
		}
	}
	return below
}

// backlog returns the last exact answer of the broker about a group. There is none if a process
// sent or received after it.
func (t *test) backlog(at *topic, members []member) (b Backlog, exact bool) {
	if !members[0].Kept {
		return b, false
	}
	last := slices.MaxFunc(members, func(a, b member) int { return cmp.Compare(a.Asked, b.Asked) })
	for _, m := range members {
		if m.process != last.process && m.joined() && m.lastRead() >= last.Asked-t.clockGap(m.process, last.process) {
			return Backlog{}, false
		}
	}
	for _, p := range at.producers {
		if p.process == last.process { // a process asks when its producers are done
			continue
		}
		if sent, _ := p.sentBefore(last.Asked - t.clockGap(p.process, last.process) - p.slowest); sent < p.Next {
			return Backlog{}, false
		}
	}
	return last.Backlog, last.Asked > 0
}

// lastRead returns when the process may have read from the group for the last time.
func (m member) lastRead() int64 {
	if slices.ContainsFunc(m.Sources, func(s SourceSnapshot) bool { return s.Drained.Len() > 0 }) {
		return m.process.Ended
	}
	return min(m.There[len(m.There)-1].Until, m.process.Ended)
}

// firstMember returns the process that had the group's first member.
func firstMember(members []member) (first member) {
	for _, m := range members {
		if m.joined() && (first.GroupLedger == nil || m.There[0].From < first.There[0].From) {
			first = m
		}
	}
	return first
}
