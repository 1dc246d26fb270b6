package load

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// A message may come in at another topic than the one it was sent to: by a wildcard, an exchange that copies, a service that forwards, or as a
// dead letter. It is in no account of the group that it comes to, which cannot know what was meant for it. But once a group has got a message
// of a topic, what it lacks of that topic is missing from its latencies, unless somebody else got that instead.

// passage is what a group received of the messages of another topic.
type passage struct {
	from    *Topic
	to      *group
	track   *track.Group // of from
	reader  *track.Reader
	lowest  map[uint64]uint64 // by producer: the lowest number of those that came
	emptied atomic.Bool       // since the first came, the test has deleted or emptied a topic that they were in
}

// robbed notes that the test has deleted or emptied the topic: messages may have been on their way from it, or to it.
func (t *Topic) robbed() {
	for _, p := range t.everyPassage() {
		p.emptied.Store(true)
	}
	for _, g := range t.everyGroup() {
		g.passages.each(func(p *passage) { p.emptied.Store(true) })
	}
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

// rejectedPassing notes that messages of another topic were rejected here, which hands them on.
func (g *group) rejectedPassing(r *Run, s *Stamp) {
	r.mu.Lock()
	from := r.senders[s.Producer]
	r.mu.Unlock()
	g.passages.mu.Lock()
	defer g.passages.mu.Unlock()
	if p, known := g.passages.of[from]; known {
		p.reader.RejectedN(s.Producer, s.Sequence, 1)
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

// apart tells whether of two that receive messages of a topic each gets its own. Where one has got nothing of what the other was there for, or the
// other has rejected all of that, nothing tells that it is so.
func apart(both, mine, theirs uint64) bool {
	return mine > 0 && theirs > 0 && float64(both) <= copiedShare*float64(min(mine, theirs))
}

// passedBy is what must come in. Where that is dead letters of the topic's own consumers, it is those that they rejected; how many more the broker
// gave up, nobody knows. Those that got what came in and kept none of it are taken to have rejected it to here.
func (p *passage) passedBy() result.Passed {
	by := result.Passed{Broker: p.from.Address.String(), From: p.from.Name, Keyed: p.from.routed.Load(), Emptied: p.emptied.Load()}
	var own []*track.Group
	for _, g := range p.from.everyGroup() {
		if g.kept && !by.Keyed && (apart(p.track.Common(g.track)) || p.track.Refused(g.track)) { // what is not kept is no dead letter
			own = append(own, g.track)
		}
	}
	var others []*track.Group
	fanouts := map[*Topic]bool{p.to.topic: p.to.subscriber} // each subscriber gets what any of them gets: one is enough
	for _, o := range p.from.everyPassage() {
		if o == p || o.to.subscriber && fanouts[o.to.topic] {
			continue
		}
		fanouts[o.to.topic] = o.to.subscriber || fanouts[o.to.topic]
		if apart(p.track.Common(o.track)) {
			others = append(others, o.track)
		}
	}
	tally := p.track.Tally()
	by.Drained = tally.Drained
	if by.Rejected = len(own) > 0; by.Rejected {
		by.Expected, by.Missing = p.track.HandedOn(own, others)
	} else {
		by.Expected, by.Missing = tally.Expected, p.track.MissingFromAll(others...)
	}
	return by
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
		if by := p.passedBy(); !by.Keyed && by.Missing > 0 {
			missing += by.Missing
			at = append(at, p.to)
		}
	}
	return missing, at
}

// addPassed adds, to the groups that messages of other topics came in at, what of them did not. Of a shared run only all processes know.
func addPassed(r *result.Result, run *Run) {
	for _, t := range run.Topics() {
		for _, p := range t.everyPassage() {
			g := groupOf(r, p.to)
			if g == nil || t.shared() {
				continue
			}
			by := p.passedBy()
			if from := topicOf(r, t); from != nil && !by.Rejected {
				by.Failed = uint64(from.ErrorsOf("send") + from.ErrorsOf("request")) //gosec:disable G115 -- a count, far below the limit
			}
			g.Pass(by)
		}
	}
}

func topicOf(r *result.Result, t *Topic) *result.Topic {
	i := slices.IndexFunc(r.Topics, func(of result.Topic) bool { return of.Broker == t.Address.String() && of.Topic == t.Name })
	if i < 0 {
		return nil
	}
	return &r.Topics[i]
}

func groupOf(r *result.Result, g *group) *result.Group {
	t := topicOf(r, g.topic)
	if t == nil {
		return nil
	}
	i := slices.IndexFunc(t.Groups, func(of result.Group) bool { return of.Group == g.label() })
	if i < 0 {
		return nil
	}
	return &t.Groups[i]
}
