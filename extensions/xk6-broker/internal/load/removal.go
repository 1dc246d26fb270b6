package load

import (
	"cmp"
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Settle completes the account of a topic that is about to be deleted or emptied by the test itself: what is outstanding is read on by
// those who consume, or else drained; what then is missing was removed and is not lost, as far as the broker had it. A topic that stays may
// keep what consumers hold. A group that comes later expects nothing of what was sent before.
//
// Topics of that name at other addresses may be the same one: what was removed from them is in doubt, unless the broker still has as much. So it is
// where nobody knows whether the broker has removed it.
func (r *Run) Settle(ctx context.Context, t *Topic, d Drain, stays bool, remove func() error) error {
	if len(r.open(t)) == 0 {
		r.drain(ctx, []*Topic{t}, d)
	}
	underWay := uint64(r.InFlight()) //gosec:disable G115 -- a count, far below the limit
	var all []*emptying
	for _, other := range r.Topics() {
		if other.Name == t.Name {
			all = append(all, &emptying{topic: other, asked: other.note(), numbered: other.numbered(), underWay: underWay, had: other.has(ctx)})
		}
	}
	err := remove()
	switch t.Address.Driver.KindOf(err) {
	case driver.NotFound, driver.Denied, driver.Rejected, driver.Throttled, driver.Unsupported, driver.Closed: // it was not done
		return err
	}
	for _, e := range all {
		e.done(ctx, stays, e.topic == t && err == nil)
	}
	return err
}

// Agree notes that this process has come to a call that all processes of the test make, in which one of them deletes or empties the topic when all have come. What
// it gives notes that this process goes on, when that one has. So what it had sent before the call no group expects that came after it, in whatever process, and no
// clocks have to be compared for that.
func (t *Topic) Agree(call string) (goOn func()) {
	from := t.note()
	return func() {
		until := t.note()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.shared() {
			t.agreed = append(t.agreed, result.Agreed{Call: call, From: from, Until: until})
		}
	}
}

// emptying is that a topic is about to be deleted or emptied.
type emptying struct {
	topic    *Topic
	asked    int64  // ns since the Unix epoch
	numbered uint64 // how many messages were numbered
	underWay uint64 // how many of the run's were in flight
	had      map[string]*result.Waiting
}

// done notes that the test has removed what the topic had or, where that is not certain, may have. One that stays may have some of it left, or all where
// the broker does not say how much.
func (e *emptying) done(ctx context.Context, stays, certain bool) {
	t := e.topic
	meanwhile := t.numbered() - e.numbered + e.underWay
	var left map[string]*result.Waiting // nil where nothing is
	if stays || !certain {
		left = t.has(ctx)
	}
	if !certain && meanwhile == 0 && t.keptAll(e.had, left) {
		return
	}
	r := result.TopicRemoval{Asked: e.asked, Done: t.note(), Certain: certain, Had: map[string]result.Emptied{}}
	for name, had := range e.had {
		if had != nil {
			r.Had[name] = result.Emptied{Had: had.Backlog, Left: remains(name, e.had, left).Backlog}
		}
	}
	t.emptied(r)
	t.robbed()
	for _, g := range t.everyGroup() { // those too that have come since
		g.removed(e.had[g.account], remains(g.account, e.had, left), meanwhile)
		if certain && !stays {
			g.forgotten()
		}
	}
}

// remains is what the broker has left for a group, which may be all that it had where it does not tell.
func remains(name string, had, left map[string]*result.Waiting) *result.Waiting {
	if left == nil {
		return &result.Waiting{}
	}
	return cmp.Or(left[name], had[name])
}

// keptAll tells whether the broker has as much as before for every group, which there are, that it keeps something for.
func (t *Topic) keptAll(had, left map[string]*result.Waiting) bool {
	for name, before := range had {
		if now := left[name]; before == nil || now == nil || before.Messages != now.Messages {
			return false
		}
	}
	return len(had) > 0
}

// emptied keeps that the topic was deleted or emptied, or may have been, for groups that come later and for other processes.
func (t *Topic) emptied(r result.TopicRemoval) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.doubted = nil; r.Certain {
		t.track.Remove()
	} else {
		t.doubted = t.track.Numbered()
	}
	if t.courses != nil {
		t.removals = append(t.removals, r)
	}
}

// numbered is how many messages were numbered.
func (t *Topic) numbered() (n uint64) {
	for _, next := range t.track.Numbered() {
		n += next
	}
	return n
}

// has asks what the broker has for each group, by its account's name, also those that only other processes have members of; nil where it cannot tell.
func (t *Topic) has(ctx context.Context) map[string]*result.Waiting {
	all := map[string]*result.Waiting{}
	for _, g := range t.everyGroup() {
		if said := exactly(ctx, g.ask); said != nil {
			w := g.waiting(said)
			all[g.account] = &w
		} else if g.kept || g.attended() {
			all[g.account] = nil
		}
	}
	for _, name := range t.absent() {
		if said := exactly(ctx, func(ctx context.Context) backlog { return t.ask(ctx, name) }); said != nil {
			all[name] = &result.Waiting{Backlog: said.told()}
		} else {
			all[name] = nil
		}
	}
	return all
}

// exactly asks for a backlog; nil where the broker cannot tell.
func exactly(ctx context.Context, ask func(context.Context) backlog) *backlog {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	if said := ask(ctx); said.exact() {
		return &said
	}
	return nil
}

// removed notes that the test has removed what the broker had, and may have got meanwhile, but for what it has left. For those who are not there it had
// nothing where it keeps nothing.
func (g *group) removed(had, left *result.Waiting, meanwhile uint64) {
	if !g.kept && !g.attended() {
		return
	}
	before := g.track.Tally().Removed
	g.track.Remove()
	lacked := g.track.Tally().Removed - before + meanwhile
	g.strangers.doubt()
	if g.attended() { // what was on its way to a consumer may be in no backlog: nothing is lost for sure
		meanwhile = lacked
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removal.Add(result.RemovalOf(lacked, meanwhile, had, left))
}

// forgotten notes that the topic was deleted. Where nobody of the group is there its place is gone too, and one that begins with what is new when it
// comes again, to a topic of that name, expects nothing of what was sent before.
func (g *group) forgotten() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members == 0 && !g.earliest && !g.shared {
		g.track.Close()
	}
}

// inherit puts in doubt what the topic may have lost before the group came, which expects it, by the number that each producer had come to.
func (g *group) inherit(doubted map[uint64]uint64) {
	g.track.RemoveBelow(doubted)
	for _, n := range doubted {
		g.removal.Add(result.RemovalOf(n, 0, nil, nil))
	}
}
