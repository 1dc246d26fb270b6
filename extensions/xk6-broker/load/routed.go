package load

import (
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

// A message may come in at another topic than the one it was sent to: by a wildcard, an exchange that copies, a service that forwards, or as a
// dead letter. It is in no account of the group that it comes to, which cannot know what was meant for it. But once a group has got a message
// of a topic, what it lacks of that topic is missing from its latencies, unless somebody else got that instead.

// passage is what a group received of the messages of another topic.
type passage struct {
	from   *Topic
	to     *group
	track  *track.Group // of from
	reader *track.Reader
	lowest map[uint64]uint64 // by producer: the lowest number of those that came
}

// passages are those to one group, by the topic that they are from.
type passages struct {
	mu sync.Mutex
	of map[*Topic]*passage
}

// passed notes that a message of another topic came in.
func (g *group) passed(s *Stamp, from *Topic) {
	g.passages.mu.Lock()
	p, known := g.passages.of[from]
	if !known {
		p = g.newPassage(from)
		g.passages.of[from] = p
	}
	p.received(s)
	g.passages.mu.Unlock()
	if !known { // a topic's lock may be held by one who waits for the passages'
		from.mu.Lock()
		from.passages = append(from.passages, p)
		from.mu.Unlock()
	}
}

// drainedPassing notes that a message of another topic was read when the group left, by none of its consumers.
func (g *group) drainedPassing(r *Run, s *Stamp) {
	r.mu.Lock()
	from := r.senders[s.Producer]
	r.mu.Unlock()
	g.passages.mu.Lock()
	defer g.passages.mu.Unlock()
	if p, known := g.passages.of[from]; known {
		p.reader.Drained(s.Producer, s.Sequence)
	}
}

func (g *group) newPassage(from *Topic) *passage {
	name := "\x00" + g.topic.Address.String() + "\x00" + g.topic.Name + "\x00" + g.account // none of the topic's own has such a one
	all := from.track.Group(name, track.New)
	all.Ready()
	return &passage{from: from, to: g, track: all, reader: all.Reader(), lowest: map[uint64]uint64{}}
}

func (p *passage) received(s *Stamp) {
	if lowest, ok := p.lowest[s.Producer]; !ok || s.Sequence < lowest {
		p.lowest[s.Producer] = s.Sequence
		p.track.ExpectFrom(s.Producer, s.Sequence)
	}
	p.reader.Seen(s.Producer, s.Sequence)
}

// ready, close and succeed do to the passages to a group what is done to its own account.
func (all *passages) ready() { all.each(func(p *passage) { p.track.Ready() }) }

func (all *passages) close() { all.each(func(p *passage) { p.track.Close() }) }

func (all *passages) succeed() {
	all.each(func(p *passage) {
		p.track.Succeed()
		p.reader = p.track.Reader()
	})
}

func (all *passages) each(do func(*passage)) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, p := range all.of {
		do(p)
	}
}

// copiedShare is the share of the messages of one who got fewer that another must have too for the two to get copies. Else each gets its own:
// dead letters, or what a service shares out.
const copiedShare = 0.1

// apart tells whether of two that receive messages of a topic each gets its own. Where one has nothing of what the other was there for, or
// has rejected all of that, nothing tells that it is so.
func apart(a, b *track.Group) bool {
	both, mine, theirs := a.Common(b)
	return mine > 0 && theirs > 0 && float64(both) <= copiedShare*float64(min(mine, theirs))
}

// passedBy is what is known of the messages of a topic that come in at a group of another.
type passedBy struct {
	from     *Topic
	expected uint64 // since the first came in
	missing  uint64 // of these
	drained  uint64 // of these, read when the group left, by none of its consumers
	failed   uint64 // sends to the topic that failed
	keyed    bool   // what is missing was perhaps meant for others, by its key
}

// passedBy is false where what comes in are dead letters of the topic's own consumers, so that nobody knows how many must.
func (p *passage) passedBy() (passedBy, bool) {
	by := passedBy{from: p.from, keyed: p.from.routed.Load()}
	for _, g := range p.from.everyGroup() {
		if g.kept && !by.keyed && apart(p.track, g.track) { // what is not kept is no dead letter
			return passedBy{}, false
		}
	}
	var others []*track.Group
	fanouts := map[*Topic]bool{p.to.topic: p.to.subscriber} // each subscriber gets what any of them gets: one is enough
	for _, o := range p.from.everyPassage() {
		if o == p || o.to.subscriber && fanouts[o.to.topic] {
			continue
		}
		fanouts[o.to.topic] = o.to.subscriber || fanouts[o.to.topic]
		if apart(p.track, o.track) {
			others = append(others, o.track)
		}
	}
	tally := p.track.Tally()
	by.expected, by.drained, by.missing = tally.Expected, tally.Drained, p.track.MissingFromAll(others...)
	return by, true
}

func (t *Topic) everyPassage() []*passage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.passages)
}

// passing is how many of the topic's messages are still to come in at others, and at which groups, that somebody is there for.
func (t *Topic) passing() (missing uint64, at []*group) {
	for _, p := range t.everyPassage() {
		if !p.to.attended() || p.track.Outstanding() == 0 {
			continue
		}
		if by, ok := p.passedBy(); ok && !by.keyed && by.missing > 0 {
			missing += by.missing
			at = append(at, p.to)
		}
	}
	return missing, at
}

// passes adds, to the groups that messages of other topics came in at, what of them did not. Of a shared run only all processes know.
func (r *Result) passes(run *Run) {
	for _, t := range run.Topics() {
		for _, p := range t.everyPassage() {
			g := r.groupOf(p.to)
			by, ok := p.passedBy()
			if g == nil || !ok || t.shared() {
				continue
			}
			if from := r.topicOf(t); from != nil {
				by.failed = uint64(from.errors("send") + from.errors("request"))
			}
			g.pass(by)
		}
	}
}

func (r *Result) topicOf(t *Topic) *TopicResult {
	i := slices.IndexFunc(r.Topics, func(of TopicResult) bool { return of.Broker == t.Address.String() && of.Topic == t.Name })
	if i < 0 {
		return nil
	}
	return &r.Topics[i]
}

func (r *Result) groupOf(g *group) *GroupResult {
	t := r.topicOf(g.topic)
	if t == nil {
		return nil
	}
	i := slices.IndexFunc(t.Groups, func(of GroupResult) bool { return of.Group == g.label() })
	if i < 0 {
		return nil
	}
	return &t.Groups[i]
}

// fate is what became of those that are missing.
func (by passedBy) fate() string {
	if by.keyed {
		return "where messages go by their keys, it cannot be told whether they were meant for others, or are lost"
	}
	return "they are lost, or were meant for others; they are in no account, and missing from the latencies"
}

// pass adds what came in at one subscriber to what came in at others.
func (g *GroupResult) pass(by passedBy) {
	i := slices.IndexFunc(g.passed, func(other passedBy) bool { return other.from == by.from })
	if i < 0 {
		g.passed = append(g.passed, by)
		return
	}
	g.passed[i].expected += by.expected
	g.passed[i].missing += by.missing
	g.passed[i].drained += by.drained
	g.passed[i].failed += by.failed
}

// strayed is how many messages of other topics are missing from a group's distributions.
func (g *GroupResult) strayed() (n uint64) {
	for _, by := range g.passed {
		n += by.drained
		if !by.keyed {
			n += by.missing + by.failed
		}
	}
	return n
}
