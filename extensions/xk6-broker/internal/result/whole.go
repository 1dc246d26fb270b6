//gosec:disable G115 -- counts, far below their limits
package result

import (
	"fmt"
	"maps"
	"slices"
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
	unordered bool            // the broker delivers messages out of their order
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
	m.absent, m.since = map[uint32]uint64{}, map[int]uint64{}
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
			w.unordered = w.unordered || l.Unordered
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
