package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// Finish ends the run: it waits for the messages in flight, makes the consumers leave, reads
// outstanding messages, and asks the brokers for their backlogs. Further calls do nothing.
func (r *Run) Finish(ctx context.Context, d Drain) error {
	r.mu.Lock()
	done := r.finished
	r.finished = true
	publishers, replies := slices.Clone(r.publishers), slices.Clone(r.replies)
	r.mu.Unlock()
	if done {
		return nil
	}
	_ = each(ctx, d.Limit, publishers, (*Publisher).proveAgain)
	err := errors.Join(
		each(ctx, d.Limit, publishers, func(p *Publisher, ctx context.Context) error {
			return p.driver.Wrap("close producer", p.producer.Close(ctx))
		}),
		each(ctx, d.Limit, r.open(nil), (*Consumer).Leave),
		each(ctx, OpenTimeout, replies, (*Replies).close),
	)
	r.drain(ctx, r.groups(), d)
	for _, t := range r.Topics() {
		t.askBacklogs(ctx)
	}
	limit := max(d.Limit, r.brief(time.Minute)) // reading back is the broker's work
	ctx, cancel := d.context(ctx, limit)
	defer cancel()
	return errors.Join(err, each(ctx, limit, publishers, (*Publisher).audit))
}

// audit asks the broker of a driver that only sends for the messages that it confirmed.
func (p *Publisher) audit(ctx context.Context) error {
	auditor, ok := p.producer.(driver.Auditor)
	if !ok || p.driver.Features.Start != 0 {
		return nil
	}
	is, err := auditor.Audit(ctx)
	if is.Confirmed == 0 {
		return nil
	}
	a := account.Account{Tally: account.Tally{Expected: is.Confirmed, Missing: is.Confirmed}}
	if err != nil {
		a.Doubt(account.NoBacklog, is.Confirmed)
	} else {
		a.Drained, a.Missing, a.Lost = is.Confirmed-is.Missing, is.Missing, is.Missing
	}
	p.topic.mu.Lock()
	defer p.topic.mu.Unlock()
	p.topic.readBack.Group = account.ReadBack
	p.topic.readBack.Sum(a)
	return p.driver.Wrap("read back "+p.topic.Name, err)
}

// Remove runs a function that deletes or empties a topic. If nothing is going on, outstanding
// messages are drained first. Missing messages that were sent before are uncertain. stays is false
// if the topic is deleted.
func (r *Run) Remove(ctx context.Context, t *Topic, d Drain, stays bool, remove func() error) error {
	for until := driver.Now() + int64(d.Leave); len(r.open(t)) > 0 && driver.Now() < until; {
		if r.sleep(ctx, driver.Now()+int64(drainPoll)) != nil {
			break
		}
	}
	if len(r.open(t)) == 0 && r.InFlight() == 0 {
		r.drain(ctx, t.everyGroup(), d)
	}
	err := remove()
	switch t.Address.Driver.KindOf(err) { // the broker did nothing
	case driver.NotFound, driver.Denied, driver.Rejected, driver.Throttled, driver.Unsupported, driver.Closed:
		return err
	}
	now, deleted := driver.Now(), !stays && err == nil
	t.mu.Lock()
	t.removed = append(t.removed, now)
	if deleted {
		t.created = nil
	}
	t.mu.Unlock()
	t.track.Remove(now)
	for _, g := range t.everyGroup() {
		if deleted {
			g.forget()
		}
	}
	return err
}

// arrivedQuiet is the time without a message after which everything has arrived.
const arrivedQuiet = 200 * time.Millisecond

// progress changes while messages of the test are on their way.
type progress struct {
	inFlight int64  // sends without an answer
	missing  uint64 // not received
	held     uint64 // received, and not settled although the test settles
	fresh    int64  // received, of whatever origin
}

// Arrived returns when the consumers have received and settled all messages and wait for more, when
// the brokers have no more, or when nothing has changed for the drain timeout. idle returns since when
// the script's consumers wait for messages: now if one is at work.
func (r *Run) Arrived(ctx context.Context, idle func(now int64) int64) error {
	var before progress
	var asked int64
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
		case is.inFlight == 0 && quiet > int64(time.Second) && now-asked > int64(askEvery):
			if asked = now; r.exhausted(ctx) {
				return nil
			}
		}
		if err := r.sleep(ctx, now+int64(arrivedPoll)); err != nil {
			return err
		}
	}
}

const arrivedPoll = 20 * time.Millisecond

// exhausted reports whether the brokers have nothing more for the groups that lack messages: other
// processes of the test may have received them.
func (r *Run) exhausted(ctx context.Context) bool {
	for _, g := range r.groups() {
		switch {
		case !g.attended(), g.track.Outstanding()+g.track.Held() == 0:
		case g.kept && !g.exhausted(ctx), !g.kept && !r.shared:
			return false
		}
	}
	return true
}

// progress adds up the messages on their way to groups that have members, or whose members may come
// back.
func (r *Run) progress() progress {
	p := progress{inFlight: r.InFlight(), fresh: r.fresh.Load()}
	for _, g := range r.groups() {
		if !g.attended() {
			continue
		}
		p.missing += g.track.Outstanding()
		if g.settles.Load() && g.kept {
			p.held += g.track.Held()
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
