//gosec:disable G115 -- counts, far below their limits
package load

import (
	"math"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/pace"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Queue is how many arrivals are due and have not been sent, and since when the first of them is.
type Queue struct {
	Waiting uint64
	Since   int64 // by [driver.Now]
}

// open is what is under way of a topic: nothing where the run has ended. What becomes of it nobody knows yet: [crossings] know of what has come to an end.
type open struct {
	at        int64
	sends     uint64 // handed over, or about to be
	requests  uint64
	queues    []Queue
	asks      bool // requests are sent to it, so that what waits may be some
	sent      int64
	intervals []*interval
}

// open looks at what is under way of each topic. It is to be asked before what was measured is, so that
// what ends meanwhile is in both and not in neither.
func (c *Collector) open() map[topicKey]*open {
	r := c.run
	r.mu.Lock()
	publishers := r.publishers
	r.mu.Unlock()
	all := map[topicKey]*open{}
	now := driver.Now()
	for _, t := range r.Topics() {
		all[topicKey{t.Address.String(), t.Name}] = &open{at: now, requests: uint64(t.asking.Load()), asks: t.asks.Load(), queues: t.loops.queues(now)}
	}
	for _, p := range publishers {
		o := all[topicKey{p.topic.Address.String(), p.topic.Name}]
		o.sends += uint64(p.window.inFlight())
		if n := p.queued.Load(); n > 0 { // since when they are is not known
			o.queues = append(o.queues, Queue{Waiting: uint64(n), Since: now})
		}
	}
	for _, s := range r.All() {
		o := all[topicKey{s.Broker, s.Topic}]
		if o == nil {
			continue
		}
		o.sent += s.Count(metric.Sent)
		if c.Waiting == nil {
			continue
		}
		if q := c.Waiting(s.Labels, s.Count(metric.Due)); q.Waiting > 0 {
			o.queues = append(o.queues, q)
		}
	}
	return all
}

// until is what was under way then, of what is now: of what was handed over the last that was sent, and of arrivals that wait as many as if they had
// come evenly. It may be nil.
func (o *open) until(at int64) (u result.Underway) {
	if o == nil {
		return u
	}
	after := o.sent
	for _, i := range o.intervals {
		if i.to <= at {
			after -= i.counts[metric.Sent]
		}
	}
	if at >= o.at {
		after = 0
	}
	u.Sends, u.Requests = o.sends-min(o.sends, uint64(max(0, after))), o.requests-min(o.requests, uint64(max(0, after)))
	for _, q := range o.queues {
		share := 1.0
		if at < o.at {
			share = max(0, float64(at-q.Since)) / float64(max(1, o.at-q.Since))
		}
		u.Arrivals += uint64(math.Round(share * float64(q.Waiting)))
	}
	u.Sends += u.Arrivals
	if o.asks {
		u.Requests += u.Arrivals
	}
	return u
}

// loops are the produce loops of a topic that go on.
type loops struct {
	mu  sync.Mutex
	all map[*agenda]struct{}
}

// begin adds the loops of one load until the result is called.
func (l *loops) begin(a *agenda) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*agenda]struct{}{}
	}
	l.all[a] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, a)
	}
}

func (l *loops) queues(now int64) (all []Queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range l.all {
		if q := a.queue(now); q.Waiting > 0 {
			all = append(all, q)
		}
	}
	return all
}

// agenda knows how much of a produce loop's schedule is due. It has a schedule of its own, as one serves one goroutine, and only goes forward in it.
type agenda struct {
	loop     *produceLoop
	schedule pace.Schedule
	seen     []seen // when it was looked at, from the last time on that nothing waited
}

// seen is how many arrivals were due at an instant.
type seen struct {
	at  int64
	due uint64
}

// newAgenda is for a loop with a schedule: in a closed one nothing is due before it is sent.
func newAgenda(l *produceLoop) *agenda {
	return &agenda{loop: l, schedule: l.own.Of(l.Share.Of(l.Schedule())), seen: []seen{{at: l.Start}}}
}

func (a *agenda) queue(now int64) Queue {
	l, taken := a.loop, a.loop.taken.Load()
	due := a.seen[len(a.seen)-1].due
	for ; l.Count == 0 || due < l.count; due++ {
		at, ok := a.schedule.At(due)
		if !ok || l.Duration > 0 && at >= l.Duration || l.Start+int64(at) > now {
			break
		}
	}
	a.seen = append(a.seen, seen{max(now, l.Start), due})
	for len(a.seen) > 2 && a.seen[1].due <= taken {
		a.seen = a.seen[1:]
	}
	from, to := a.seen[0], a.seen[1]
	q := Queue{Waiting: due - min(due, taken), Since: from.at}
	if n := to.due - from.due; n > 0 {
		q.Since += int64(float64(to.at-from.at) * float64(taken-min(taken, from.due)) / float64(n))
	}
	return q
}
