package load

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// way is what a message is on from when it is due: until it is handed over, until it is known what became of its sending or of its request, and
// until a consumer gets it.
type way uint8

const (
	toArrive way = iota
	toSend
	toAsk
	toDeliver
	numWays = iota
)

// crossings count, of a topic, the messages that were due before an instant and at the end of a way after it: those that a measurement up to the
// instant lacks. That is only known afterwards, but then of all of them: of those that nobody had looked at yet, as they waited for a VU, and of
// those that another process sent. A message that begins and ends between two instants costs a comparison.
type crossings struct {
	edge *atomic.Int64 // the last instant

	mu    sync.Mutex
	spans []span // between the instants; the last goes on
	cuts  []crossed
}

// span is a stretch of time: how many more messages were due in it than came to an end.
type span struct {
	to   int64
	more [numWays]int64
}

// crossed is how many messages crossed an instant.
type crossed struct {
	at int64
	n  [numWays]uint64
}

// edges are the instants that crossings are counted at, those of all topics.
type edges struct {
	last atomic.Int64
	mu   sync.Mutex
	cuts []int64 // those that are not forgotten
	all  map[topicKey]*crossings
}

func newEdges() *edges {
	e := &edges{all: map[topicKey]*crossings{}}
	e.last.Store(math.MinInt64)
	return e
}

// of finds or makes the crossings of a topic.
func (e *edges) of(key topicKey) *crossings {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.all[key]
	if !ok {
		c = &crossings{edge: &e.last, spans: []span{{to: e.last.Load()}, {to: math.MaxInt64}}}
		for _, at := range e.cuts {
			c.cuts = append(c.cuts, crossed{at: at})
		}
		e.all[key] = c
	}
	return c
}

// next is an instant. Of one that is a cut it is never forgotten what crossed it.
func (e *edges) next(at int64, cut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cut {
		e.cuts = append(e.cuts, at)
	}
	for _, c := range e.all {
		c.next(at, cut)
	}
	e.last.Store(at)
}

func (c *crossings) next(at int64, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cut {
		c.cuts = append(c.cuts, crossed{at: at})
	}
	if last := len(c.spans) - 1; c.spans[last-1].to < at {
		c.spans[last].to = at
		c.spans = append(c.spans, span{to: math.MaxInt64})
	}
}

// ended notes n messages that were due then and are at the end of a way now.
func (c *crossings) ended(w way, due, n int64) {
	if due < c.edge.Load() {
		c.late(w, due, n)
	}
}

func (c *crossings) late(w way, due, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, _ := slices.BinarySearchFunc(c.spans, due+1, func(s span, at int64) int { return cmp.Compare(s.to, at) })
	c.spans[i].more[w] += n
	c.spans[len(c.spans)-1].more[w] -= n
	for i := len(c.cuts) - 1; i >= 0 && due < c.cuts[i].at; i-- {
		c.cuts[i].n[w] += uint64(n) //gosec:disable G115 -- a count
	}
}

// join forgets an instant, which is no cut or kept as one all the same.
func (c *crossings) join(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := slices.BinarySearchFunc(c.spans, at, func(s span, at int64) int { return cmp.Compare(s.to, at) })
	if !ok {
		return
	}
	for w, n := range c.spans[i].more {
		c.spans[i+1].more[w] += n
	}
	c.spans = slices.Delete(c.spans, i, i+1)
}

// at is what crossed a cut.
func (c *crossings) at(cut int64) result.Underway {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := slices.BinarySearchFunc(c.cuts, cut, func(one crossed, at int64) int { return cmp.Compare(one.at, at) })
	if !ok {
		return result.Underway{}
	}
	return underway(c.cuts[i].n)
}

// over is what crossed each of the instants that are asked for, in their order.
func (c *crossings) over(instants []int64) []result.Underway {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]result.Underway, len(instants))
	var sum [numWays]int64
	next := 0
	for i, at := range instants {
		for ; next < len(c.spans) && c.spans[next].to <= at; next++ {
			for w, n := range c.spans[next].more {
				sum[w] += n
			}
		}
		var n [numWays]uint64
		for w := range sum {
			n[w] = uint64(max(0, sum[w]))
		}
		all[i] = underway(n)
	}
	return all
}

func underway(n [numWays]uint64) result.Underway {
	return result.Underway{Arrivals: n[toArrive], Sends: n[toSend], Requests: n[toAsk], Deliveries: n[toDeliver]}
}
