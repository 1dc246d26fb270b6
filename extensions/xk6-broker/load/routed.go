package load

import (
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

// passage is what consumers of other topics received of a topic's messages, such as those of a wildcard that it matches. They are in no group of
// the topic, so that no account expects anything: from the first message on, passage does.
type passage struct {
	mu     sync.Mutex
	group  *track.Group // nil before the first
	reader *track.Reader
	at     *Topic // that the first came in at
}

// passageName is none that a group could have.
const passageName = "\x00passage"

// passed notes that a message of the topic came in at another.
func (t *Topic) passed(s *Stamp, at *Topic) {
	p := &t.passage
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group == nil {
		p.group, p.at = t.track.Group(passageName, track.New), at
		p.group.Ready()
		p.reader = p.group.Reader()
	}
	p.reader.Received(s.Producer, s.Sequence, 0, 0)
}

// passedBy is what is known of the messages of a topic that no group of its own receives.
type passedBy struct {
	expected, missing uint64 // since the first came in elsewhere
	at                string // where
}

func (p *passage) result() passedBy {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group == nil {
		return passedBy{}
	}
	all := p.group.Tally()
	return passedBy{all.Expected, all.Missing, p.at.Name}
}

// passing is how many messages of the topic, which no group of its own receives, are still to come in at another, and at which.
func (t *Topic) passing() (missing uint64, at *Topic) {
	if len(t.everyGroup()) > 0 {
		return 0, nil
	}
	p := &t.passage
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group == nil {
		return 0, nil
	}
	return p.group.Outstanding(), p.at
}

// strayed adds, to the topics that messages of others come in at, those that did not come: in whose distributions they are missing.
func (r *Result) strayed() {
	for i := range r.Topics {
		from := &r.Topics[i]
		if from.passed.missing == 0 || len(from.Groups) > 0 || from.shared {
			continue
		}
		for k := range r.Topics {
			if at := &r.Topics[k]; at.Broker == from.Broker && at.Topic == from.passed.at {
				at.stray += from.passed.missing
			}
		}
	}
}
