package engine

import (
	"context"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// arrivedQuiet is how long nothing must be outstanding, and nobody at work, until everything is known to have arrived.
const arrivedQuiet = 200 * time.Millisecond

// Arrived returns when those who consume have received all that was sent, have settled it as far as they settle, and wait for more; or when
// they do not get on although nothing more is sent. That is after [Run.Patience], and less where all have waited for a while and the broker
// says that it has no more. It may also return ctx's error. Where nothing has changed since it returned last, it returns at once.
//
// idle is since when all who consume wait for messages: now where one is at work. It may send on what it got, and what lies in its client
// comes only then.
func (r *Run) Arrived(ctx context.Context, idle func(now int64) int64) error {
	limit := r.Patience()
	for w := (wait{changed: driver.Now()}); ; {
		now := driver.Now()
		w.look(r, now)
		if before := r.rested.Load(); before != nil && *before == w.standing {
			return nil
		}
		switch rested := now - max(w.changed, idle(now), r.idleSince(now)); {
		case now-w.changed > int64(limit):
			r.Hurry()
			r.over(&w.standing)
			return nil
		case w.done() && rested > int64(arrivedQuiet) && !w.more(ctx, now), !w.done() && rested > int64(restTimeout) && w.hopeless(ctx, now):
			r.over(&w.standing)
			return nil
		}
		if err := r.sleep(ctx, now+int64(drainPoll)); err != nil {
			return err
		}
	}
}

// over is how things stood with a topic when its consumers were told that nothing more would come.
type over struct{ at, confirmed int64 }

// over notes what had been confirmed when those who consume were told that nothing more would come, and how things stood.
func (r *Run) over(as *standing) {
	r.rested.Store(as)
	for _, t := range r.Topics() {
		t.over.Store(&over{at: driver.Now(), confirmed: r.confirmed(t)}) // whoever is told last ends it
	}
}

// confirmed is how many messages of a topic are.
func (r *Run) confirmed(t *Topic) (n int64) {
	broker := t.Address.String()
	for _, s := range r.All() {
		if s.Broker == broker && s.Topic == t.Name {
			n += s.Count(recording.Confirmed)
		}
	}
	return n
}

// idleSince is since when all consumers wait for messages: now where one has got some and not asked for more.
func (r *Run) idleSince(now int64) int64 {
	since := int64(0)
	for _, c := range r.open(nil) {
		at := c.idle.Load()
		if at == atWork {
			return now
		}
		since = max(since, at)
	}
	return since
}

// atWork stands for the time since when a consumer waits that does not.
const atWork = 0

// standing is what changes while somebody gets on.
type standing struct {
	inFlight int64  // sends whose fate is not known
	missing  uint64 // has not been received
	held     uint64 // has been received and not settled
	came     int64  // to all who consume, whatever it was, but for what comes again and again although nobody gives it back
}

// wait is what is waited for, as it was when somebody last looked.
type wait struct {
	standing

	changed int64    // when that last did
	asked   int64    // when the brokers last were
	none    int      // how often in a row they had nothing
	spent   bool     // they have no more of what is in no account
	awaited []*group // of which something is missing or held
	strange []*group // that got what is in no account of theirs
}

// done tells whether nothing is outstanding that is accounted for.
func (w *wait) done() bool { return w.inFlight+int64(w.missing+w.held) == 0 } //gosec:disable G115 -- a count, far below the limit

func (w *wait) look(r *Run, now int64) {
	w.awaited, w.strange = w.awaited[:0], w.strange[:0]
	s := standing{inFlight: r.InFlight(), came: r.came.Load()}
	for _, t := range r.Topics() {
		for _, g := range t.everyGroup() {
			missing, held := g.awaited()
			if missing+held > 0 {
				w.awaited = append(w.awaited, g)
			}
			if g.keepsStrangers() {
				w.strange = append(w.strange, g)
			}
			s.missing += missing
			s.held += held
		}
	}
	if s != w.standing {
		w.standing, w.changed, w.none, w.spent = s, now, 0, false
	}
}

// more tells whether a broker has more for a group that got messages that are in no account: without a stamp, or of other producers.
func (w *wait) more(ctx context.Context, now int64) bool {
	if len(w.strange) > 0 && now-w.asked > int64(askEvery) {
		w.asked, w.spent = now, true
		for _, g := range w.strange {
			w.spent = w.spent && g.exhausted(ctx)
		}
	}
	return len(w.strange) > 0 && !w.spent
}

// hopeless tells whether nothing more can come, as far as that is known.
func (w *wait) hopeless(ctx context.Context, now int64) bool {
	if w.inFlight > 0 || now-w.asked < int64(askEvery) {
		return false
	}
	w.asked = now
	for _, g := range w.awaited {
		if !g.kept || !g.exhausted(ctx) { // what is on its way to one that the broker keeps nothing for may be late
			w.none = 0
			return false
		}
	}
	w.none++
	return w.none > 1
}

// awaited is how many messages the group's members have not received, and how many they have received and not settled although the test
// settles.
func (g *group) awaited() (missing, held uint64) {
	if !g.attended() {
		return 0, 0
	}
	g.mu.Lock()
	settles := g.settles
	g.mu.Unlock()
	if settles && g.kept {
		held = g.track.Held().All
	}
	return g.track.Outstanding(), held
}

// attended tells whether somebody is there for the group. Members that the script has closed may come back, those whose time is over do not.
func (g *group) attended() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members > 0 || g.left && g.kept
}

// keepsStrangers tells whether the group, which somebody is there for, has got messages that are in no account of it, and the broker may
// have more of them.
func (g *group) keepsStrangers() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members > 0 && g.kept && g.settles && g.strangers.distinct() > 0
}
