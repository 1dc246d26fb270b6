package load

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

// wholeTopic is what the ledgers of all processes know of one topic.
type wholeTopic struct {
	id        topicID
	producers []track.ProducerLedger
	senders   map[uint64]sender // by producer
	groups    map[string][]groupShare
	failed    int64
	routed    bool // some of its messages went where their keys said
	// elsewhere tells that what is missing may have been received by somebody whose ledger is not here, or not of this topic.
	elsewhere bool
}

// sender is what is known of a producer besides its numbers.
type sender struct {
	by      *Ledger // of its process
	topic   *wholeTopic
	next    uint64 // how many numbers it handed out
	index   []Mark
	slowest time.Duration // the longest that a send to the topic took, from its number to its confirmation
}

// groupShare is what one process knows of a group.
type groupShare struct {
	*GroupLedger
	by *Ledger // of the process
}

// account puts the ledgers together.
func (m *merger) account() error {
	topics := make([]*wholeTopic, len(m.result.Topics))
	senders := map[uint64]sender{}
	for i := range topics {
		topics[i] = m.gather(m.result.Topics[i].Broker, m.result.Topics[i].Driver, m.result.Topics[i].Topic)
		maps.Copy(senders, topics[i].senders)
	}
	m.absent = map[uint32]uint64{}
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

// gather finds what the ledgers say of a topic.
func (m *merger) gather(broker, driver, topic string) *wholeTopic {
	w := &wholeTopic{id: m.key(broker, driver, topic), senders: map[uint64]sender{}, groups: map[string][]groupShare{}}
	for n, p := range m.parts {
		for k := range p.Ledger.Topics {
			l := &p.Ledger.Topics[k]
			if m.key(l.Broker, l.Driver, l.Topic) != w.id {
				continue
			}
			w.producers = append(w.producers, l.Producers...)
			w.failed += l.Failed
			w.routed = w.routed || l.Routed
			slowest := p.Result.slowest(l.Broker, l.Topic)
			for _, producer := range l.Producers {
				w.senders[producer.ID] = sender{by: p.Ledger, topic: w, next: producer.Next, index: l.Index[producer.ID], slowest: slowest}
			}
			for g := range l.Groups {
				name := l.Groups[g].Name
				if l.Groups[g].Subscriber {
					name = fmt.Sprintf("process %d, %s", n+1, name)
				}
				w.groups[name] = append(w.groups[name], groupShare{&l.Groups[g], p.Ledger})
			}
		}
	}
	return w
}

// slowest is the longest that a send to a topic took that the broker confirmed.
func (r *Result) slowest(broker, topic string) time.Duration {
	var longest int64
	for _, t := range r.Topics {
		if t.Broker != broker || t.Topic != topic {
			continue
		}
		for _, trend := range []Trend{PublishTime, RequestTime} {
			for _, name := range []string{trend.String(), trend.String() + ClosedSuffix} {
				if h := t.Trends[name]; h != nil {
					longest = max(longest, h.Max())
				}
			}
		}
	}
	return time.Duration(longest)
}

// strangers looks at what the topic's groups received of producers that are none of the topic's. Each process has counted those of its
// own; of those of others it could not know what they are.
func (m *merger) strangers(t *TopicResult, w *wholeTopic, senders map[uint64]sender) {
	var absent, routed, aliased uint64
	for _, shares := range w.groups {
		for _, s := range shares {
			for i := range s.Sources {
				id := s.Sources[i].ID
				if _, own := w.senders[id]; own {
					continue
				}
				n := s.Sources[i].Received.Len()
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
	delete(t.Counts, Sibling.String()) // they are siblings no more
	for counter, n := range map[Counter]uint64{Sibling: absent, Routed: routed, Aliased: aliased} {
		if n > 0 {
			t.Counts[counter.String()] += int64(n)
		}
	}
	if absent == 0 { // those that were sent long before the receiving process began were of this test all the same
		t.before = t.Counts[Earlier.String()]
		delete(t.Counts, Earlier.String())
	}
}

// complete tells whether all processes of the test are here, for certain.
func (m *merger) complete() bool { return len(m.parts) == m.processes && len(m.absent) == 0 }

// groups gives the result the accounts of the topic's groups.
func (m *merger) groups(t *TopicResult, w *wholeTopic) error {
	for _, name := range slices.Sorted(maps.Keys(w.groups)) {
		shares := w.groups[name]
		if !slices.ContainsFunc(shares, groupShare.consumed) {
			continue // the group was announced, and nobody joined it
		}
		said, err := m.asked(t, name, shares)
		if err != nil {
			return err
		}
		a := w.group(name, shares, said)
		if !shares[0].Subscriber {
			if w.elsewhere || !m.complete() {
				a.Lost, a.Elsewhere = 0, a.Lost
			}
			g := t.group(name)
			g.Accounting, g.kept = a, !slices.ContainsFunc(shares, func(s groupShare) bool { return !s.Kept || s.Unheld })
			continue
		}
		a.Group = Subscribers
		if g := t.group(Subscribers); g.Subscribers == 0 {
			a.Subscribers = 1
			g.Accounting = a
		} else {
			g.join(a)
		}
	}
	return nil
}

func (s groupShare) consumed() bool { return len(s.There) > 0 }

// answer is what a broker said that it has for a group, and when and to whom.
type answer struct {
	backlog
	to *Ledger // nil where it was asked when all processes had ended
}

// asked is the broker's last word on a group. It is none where a process had members in it after that.
func (m *merger) asked(t *TopicResult, name string, shares []groupShare) (answer, error) {
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
			return answer{backlog: backlog{Backlog: b, known: true}}, nil
		}
	}
	var last answer
	for _, s := range shares {
		if s.Asked > last.at {
			last = answer{backlog{s.Backlog, true, s.Asked}, s.by}
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
func (w *wholeTopic) group(name string, shares []groupShare, said answer) Accounting {
	ledgers := make([]track.GroupLedger, len(shares))
	for i, s := range shares {
		ledgers[i] = s.GroupLedger.GroupLedger
	}
	all := track.Merge(w.producers, ledgers, func(id uint64) track.Terms {
		from := w.senders[id]
		terms := track.Terms{Spans: from.spans(id, shares)}
		if said.known {
			terms.Sure, terms.Possible = from.given(said)
		}
		return terms
	}, shownRanges)
	a := Accounting{Group: name, Tally: all.Tally, Ranges: all.Ranges}
	switch {
	case !shares[0].Kept:
		a.Lost = a.Missing
	case !said.known:
		a.Uncertain = a.Missing
	default:
		strangers, holds, h := int64(0), true, held{least: int64(all.SureHeld), most: int64(all.Held)}
		for _, s := range shares {
			strangers += s.Strangers
			h.least += s.SureHeld
			h.most += s.Held
			holds = holds && !s.Unheld
		}
		if !holds {
			h.least = 0
		}
		strange := max(0, w.leftovers(shares)-strangers) + w.failed
		a.Lost, a.Undelivered, a.Uncertain = divide(all.Missing, all.Sure, all.Possible, waiting{said.Backlog, h, strange})
		if !holds { // a broker is done with what lay in the client of one who has left
			a.Lost, a.Uncertain = 0, a.Uncertain+a.Lost
		}
	}
	if w.routed {
		a.Lost, a.Uncertain = 0, a.Uncertain+a.Lost
	}
	return a
}

// spans is what a group expects of a producer, by all that the processes know.
func (s sender) spans(id uint64, shares []groupShare) []track.Bounds {
	var all []track.Bounds
	first := uint64(math.MaxUint64)
	for _, g := range shares {
		spans := g.spans(id, s.next, s.index)
		all = append(all, spans...)
		for _, b := range spans {
			first = min(first, b.From)
		}
	}
	if shares[0].Kept { // it is there from its first member on
		return []track.Bounds{{From: first, Until: math.MaxUint64}}
	}
	return all
}

// given is which of the producer's messages a broker had been given when it was asked: those below sure for certain, and none from
// possible on.
func (s sender) given(said answer) (sure, possible uint64) {
	if said.to == nil || said.to == s.by { // a process asks when its producers are done
		return math.MaxUint64, math.MaxUint64
	}
	skew := s.by.apart(said.to)
	sure, _ = handedOut(s.index, said.at-int64(skew+s.slowest), s.next)
	_, possible = handedOut(s.index, said.at+int64(skew), s.next)
	return sure, possible
}

// apart is how far the clocks of two processes may be apart.
func (l *Ledger) apart(o *Ledger) time.Duration {
	if l.Clock != "" && l.Clock == o.Clock {
		return 0
	}
	return clockSkew
}

// leftovers is what the broker had for the group before the test: what it had before the group's first member came, without what the
// member's siblings had sent by then. Of what they sent in that second it is taken that those were there that were received: brokers give
// the oldest first.
func (w *wholeTopic) leftovers(shares []groupShare) int64 {
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
		sent, _ := handedOut(from.index, first.There[0].From-int64(skew+from.slowest), from.next)
		_, perhaps := handedOut(from.index, first.Looked+int64(skew), from.next)
		there := p.Expected.Within([]track.Bounds{{From: 0, Until: sent}})
		for _, s := range shares {
			if source := s.Source(p.ID); source != nil {
				there = there.Or(source.Received.Within([]track.Bounds{{From: 0, Until: perhaps}}))
			}
		}
		left -= int64(there.Len())
	}
	return max(0, left)
}

// verdict adds what only the whole can tell, and what the processes had to say of themselves. The thresholds of one are none of all
// together.
func (m *merger) verdict() {
	v := &m.result.Verdict
	m.missing(v)
	for i, p := range m.parts {
		own := p.Result.Verdict
		var what about
		if !own.Latencies {
			what |= latencies
		}
		if !own.Account {
			what |= account
		}
		for _, reason := range own.Reasons {
			if !strings.HasSuffix(reason, mergeTells) && !slices.ContainsFunc(p.Result.Thresholds, func(t Threshold) bool { return t.reason() == reason }) {
				v.because(what, "process %d (%s): %s", i+1, p.Result.Name, reason)
			}
		}
	}
	m.notes(v)
	m.doubts(v)
	switch {
	case !m.askedLate && slices.ContainsFunc(m.result.Topics, func(t TopicResult) bool { return slices.ContainsFunc(t.Groups, doubted) }):
		v.note("what is uncertain the broker may still tell: ask it with --broker URL")
	case m.askedLate:
		v.note("what the brokers had was asked at %s, when all processes had ended, and is taken for what they had at the end of the last, at %s",
			instant(time.Unix(0, driver.Now())), instant(m.result.Started.Add(time.Duration(m.result.Seconds*float64(time.Second)))))
	}
	v.note("of %d processes: latencies between them are by the clocks of their machines; over time, the quantiles of an interval are those "+
		"of the process that had the worst", len(m.parts))
}

func doubted(g GroupResult) bool { return g.Uncertain > 0 }

// missing says which processes are not here, as far as that is known.
func (m *merger) missing(v *Verdict) {
	if here := len(m.parts); m.processes > here {
		v.because(latencies|account, "%d of the %d processes of the test are missing: merge their results too", m.processes-here, m.processes)
	}
	for _, instance := range slices.Sorted(maps.Keys(m.absent)) {
		v.because(latencies|account, "a process is missing: %d messages came from instance %d, whose result is none of these; "+
			"merge it too, or, if it was an earlier test, give each test a BROKER_RUN of its own", m.absent[instance], instance)
	}
	if m.processes != 0 {
		return
	}
	text := fmt.Sprintf("that these %d processes are all of the test is not known: if they are, say so with --processes %d, or give each of them "+
		"BROKER_PROCESSES=%d", len(m.parts), len(m.parts), len(m.parts))
	for _, t := range m.result.Topics {
		if slices.ContainsFunc(t.Groups, func(g GroupResult) bool { return g.Elsewhere > 0 }) {
			v.because(account, "%s", text)
			return
		}
	}
	v.note("%s", text)
}
