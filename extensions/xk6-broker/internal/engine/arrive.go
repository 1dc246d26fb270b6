package engine

import (
	"context"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// arrivedQuiet is how long nothing must come until everything has arrived.
const arrivedQuiet = 200 * time.Millisecond

// progress is what changes while messages of the test are on their way.
type progress struct {
	inFlight int64  // sends without an answer
	missing  uint64 // not received
	held     uint64 // received, and not settled although the test settles
	fresh    int64  // received, of whatever origin
}

// Arrived returns when the consumers have received all that was sent, have settled it as far as they
// settle, and wait for more; or when nothing has changed for the drain timeout. idle returns since
// when the script's consumers wait for messages: now if one is at work.
func (r *Run) Arrived(ctx context.Context, idle func(now int64) int64) error {
	var before progress
	for changed := driver.Now(); ; {
		now := driver.Now()
		is := r.progress()
		if is != before {
			before, changed = is, now
		}
		done := is.inFlight == 0 && is.missing+is.held == 0
		switch quiet := now - max(changed, idle(now), r.idleSince(now)); {
		case done && quiet > int64(arrivedQuiet):
			return nil
		case now-changed > int64(r.DrainTimeout()):
			r.StopWaiting()
			return nil
		}
		if err := r.sleep(ctx, now+int64(arrivedPoll)); err != nil {
			return err
		}
	}
}

const arrivedPoll = 20 * time.Millisecond

// progress adds up what is on its way to groups that have members, or whose members may come back.
func (r *Run) progress() progress {
	p := progress{inFlight: r.InFlight(), fresh: r.fresh.Load()}
	for _, t := range r.Topics() {
		for _, g := range t.everyGroup() {
			g.mu.Lock()
			attended := g.members > 0 || g.left && g.kept
			g.mu.Unlock()
			if !attended {
				continue
			}
			p.missing += g.track.Outstanding()
			if g.settles.Load() && g.kept {
				p.held += g.track.Held()
			}
		}
	}
	return p
}

// idleSince returns since when all consumers wait for messages: now if one is at work.
func (r *Run) idleSince(now int64) (since int64) {
	for _, c := range r.open(nil) {
		at := c.idle.Load()
		if at == atWork {
			return now
		}
		since = max(since, at)
	}
	return since
}
