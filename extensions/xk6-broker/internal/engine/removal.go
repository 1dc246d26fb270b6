package engine

import (
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle completes the account of a topic that the test is about to delete or empty. What then is
// outstanding has been read by those who consume, or is drained. If nobody consumes and nothing is
// in flight, the broker is asked once more what it has. What is missing of messages that were sent
// before the removal is uncertain, unless the account was complete and nothing is sent afterwards.
func (r *Run) Settle(ctx context.Context, t *Topic, d Drain, stays bool, remove func() error) error {
	alone := len(r.open(t)) == 0 && r.InFlight() == 0
	complete := alone && (!t.shared() || d.Agreed) // else others may send and receive meanwhile
	if alone {
		r.drain(ctx, []*Topic{t}, d)
		r.noteBacklogs(ctx, []*Topic{t})
	}
	err := remove()
	switch t.Address.Driver.KindOf(err) {
	case driver.NotFound, driver.Denied, driver.Rejected, driver.Throttled, driver.Unsupported, driver.Closed: // it was not done
		return err
	}
	for _, other := range r.Topics() { // one of that name at another address may be the same
		if other.Name == t.Name && other.Address.Driver.Name == t.Address.Driver.Name {
			other.removedAt(complete && other == t, !stays && err == nil)
		}
	}
	return err
}

// removedAt notes that the test has removed what the topic had, and whether its account was
// complete.
func (t *Topic) removedAt(complete, deleted bool) {
	at := t.note()
	t.mu.Lock()
	t.removed = append(t.removed, at)
	t.completed = 0
	if complete {
		t.completed = t.numbered() + 1
	}
	t.mu.Unlock()
	t.track.Remove()
	for _, g := range t.everyGroup() {
		g.track.Remove()
		g.strangers.doubt()
		if deleted {
			g.forgotten()
		}
	}
}

// numbered is how many messages were numbered.
func (t *Topic) numbered() (n uint64) {
	for _, next := range t.track.Numbered() {
		n += next
	}
	return n
}

// closed says whether the account was complete when the topic was removed, and nothing was sent
// since. The lock is held.
func (t *Topic) closed() bool { return t.completed > 0 && t.completed == t.numbered()+1 }

// forgotten notes that the topic was deleted. If no member of the group is there its place is gone
// too: when it comes again, to a topic of that name, it expects nothing of what was sent before,
// unless it begins with the earliest.
func (g *group) forgotten() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members == 0 && !g.earliest && !g.shared {
		g.track.Close()
	}
}
