package load

import (
	"context"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// arrivedQuiet is how long nothing must be outstanding, nor held by those who consume, until everything is known to have arrived: what is
// settled may have been sent on.
const arrivedQuiet = 200 * time.Millisecond

// Arrived returns when those who consume have received all that was sent and settled it, as far as they settle, or when they do not get on
// although nothing more is sent: for limit at most, and less where the broker says that it has no more, or keeps nothing. It may also
// return ctx's error.
func (r *Run) Arrived(ctx context.Context, limit time.Duration) error {
	for w := (wait{changed: driver.Now(), asked: driver.Now()}); ; {
		now := driver.Now()
		if left := w.look(r, now); now-w.changed > int64(limit) || left == 0 && now-w.changed > int64(arrivedQuiet) {
			return nil
		}
		if now-w.asked > int64(askEvery) {
			w.asked = now
			if w.hopeless(ctx, now) {
				return nil
			}
		}
		if err := r.sleep(ctx, now+int64(drainPoll)); err != nil {
			return err
		}
	}
}

// wait is what is waited for, as it was when somebody last looked.
type wait struct {
	missing uint64 // has not been received
	held    uint64 // has been received and not settled
	changed int64  // when one of these last did
	asked   int64  // when the brokers last were
	none    int    // how often in a row they had nothing
	groups  []*group
}

// look counts what is missing and held for those who are there, and gives the sum.
func (w *wait) look(r *Run, now int64) uint64 {
	w.groups = w.groups[:0]
	var missing, held uint64
	for _, t := range r.Topics() {
		for _, g := range t.everyGroup() {
			m, h := g.awaited()
			if m+h > 0 {
				w.groups = append(w.groups, g)
			}
			missing += m
			held += h
		}
	}
	if missing != w.missing || held != w.held {
		w.missing, w.held, w.changed, w.none = missing, held, now, 0
	}
	return missing + held
}

// hopeless tells whether nothing more can come, as far as that is known.
func (w *wait) hopeless(ctx context.Context, now int64) bool {
	for _, g := range w.groups {
		g.mu.Lock()
		conn := g.conn
		g.mu.Unlock()
		if g.kept && !g.exhausted(ctx, conn) || !g.kept && now-w.changed < int64(restTimeout) {
			w.none = 0
			return false
		}
	}
	w.none++
	return w.none > 1
}

// awaited is how many messages the group's members, if there are any, have not received, and how many they have received and not settled
// although the test settles.
func (g *group) awaited() (missing, held uint64) {
	g.mu.Lock()
	there, settles := g.members > 0, g.settles
	g.mu.Unlock()
	if !there {
		return 0, 0
	}
	if settles && g.kept {
		held = g.track.Held().Own
	}
	return g.track.Outstanding(), held
}
