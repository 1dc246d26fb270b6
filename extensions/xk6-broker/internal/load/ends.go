package load

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/witness"
)

// ends weigh the hiccups of the machine by the messages that came to their ends then: what comes at once is held up at once, be it in a hundredth of the
// time. Each time the witness wakes it looks how many more have ended, by counters that there are anyway, so that a message costs nothing.
//
// What ends in a standstill, or right after it, came at any moment of both: which one, nobody knows. So all of a window get the hiccups of its milliseconds
// in equal parts. Under a steady load that is as over time.
type ends struct {
	run *Run

	mu      sync.Mutex
	series  int // of the run's that are counted
	counts  []counted
	of      map[endKey]*ended
	all     []*ended
	window  []int64 // how late the witness woke, in ns
	longest int64   // of that, in ms
	left    int64   // how many times it is to wake before the window is over
}

// endKey is a topic and the end of a way, that to a consumer in one group.
type endKey struct {
	topic topicKey
	group string
	way   way
}

// ended is what came to one end.
type ended struct {
	n       uint64  // in the window
	place   float64 // where in its milliseconds the first of them falls, 0 to 1
	hiccups *hist.Histogram
}

// counted is a counter of a series, and what it was at last.
type counted struct {
	*ended
	counter *atomic.Int64
	last    int64
}

const (
	// What a standstill held up ends within so many milliseconds after it and a part of its length: the longer it was, the more there is to do. Nothing that
	// is shorter than that part makes a window longer.
	catchesUp     = 2
	catchesUpPart = 10
	// A machine that is late all the time has windows all the same.
	longestWindow = 64
)

// tick is called by the witness when it has woken, with how late.
func (e *ends) tick(late int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms := late / int64(time.Millisecond)
	if ms > e.longest {
		e.close() // what ended before is not of this standstill
	}
	e.look()
	e.window, e.longest, e.left = append(e.window, late), max(e.longest, ms), e.left-1
	if ms > 0 && ms*catchesUpPart >= e.longest {
		e.left = max(e.left, catchesUp+ms/catchesUpPart)
	}
	if e.left <= 0 || len(e.window) >= longestWindow {
		e.close()
	}
}

// look counts what has ended since it last did.
func (e *ends) look() {
	all := e.run.All()
	for _, s := range all[e.series:] {
		e.follow(s)
	}
	e.series = len(all)
	for i := range e.counts {
		c := &e.counts[i]
		now := c.counter.Load()
		c.n += uint64(now - c.last) //gosec:disable G115 -- it only grows
		c.last = now
	}
}

// follow counts a series that is new.
func (e *ends) follow(s *Series) {
	key := endKey{topic: topicKey{s.Broker, s.Topic}, group: s.Group}
	if s.Group != "" {
		e.count(key, toDeliver, &s.counters[metric.Received])
		return
	}
	e.count(key, toSend, &s.counters[metric.Confirmed])
	e.count(key, toAsk, &s.answered)
}

func (e *ends) count(key endKey, w way, counter *atomic.Int64) {
	key.way = w
	of := e.of[key]
	if of == nil {
		of = &ended{hiccups: &hist.Histogram{}}
		e.of[key] = of
		e.all = append(e.all, of)
	}
	e.counts = append(e.counts, counted{ended: of, counter: counter})
}

// close spreads what ended in the window over its milliseconds.
func (e *ends) close() {
	length := 0
	for _, late := range e.window {
		for range witness.Late(late) {
			length++
		}
	}
	for _, of := range e.all {
		if of.n > 0 {
			of.spread(e.window, length)
		}
	}
	e.window, e.longest, e.left = e.window[:0], 0, 0
}

func (e *ended) spread(window []int64, length int) {
	each, at, done := float64(e.n)/float64(length), e.place, uint64(0)
	for _, late := range window {
		for ms := range witness.Late(late) {
			at += each
			upTo := min(uint64(at), e.n)
			e.hiccups.RecordN(ms, upTo-done)
			done = upTo
		}
	}
	e.hiccups.RecordN(window[len(window)-1], e.n-done) // that rounding left
	const golden = 0.6180339887498949                  // no two windows in a row have the same place, nor any that come again and again
	_, e.place = math.Modf(e.place + golden)
	e.n = 0
}

// take gives the hiccups that befell what ended since it was last called. What ended in a window that goes on is for the next time, but at a cut.
func (e *ends) take(cut bool) befallen {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cut && len(e.window) > 0 {
		e.close()
	}
	taken := befallen{}
	for key, of := range e.of {
		if of.hiccups.Count() > 0 {
			taken[key], of.hiccups = of.hiccups, &hist.Histogram{}
		}
	}
	return taken
}

// befallen are the hiccups that befell what came to each end, one for each message.
type befallen map[endKey]*hist.Histogram

// add adds others, which are not changed.
func (b befallen) add(others befallen) {
	for key, h := range others {
		b[key] = hist.Merged(b[key], h)
	}
}

// of gives those that befell the values of a topic's latency, by the end that it has: of one group, or of none.
func (b befallen) of(topic topicKey) func(t metric.Trend, group string) *hist.Histogram {
	return func(t metric.Trend, group string) *hist.Histogram {
		switch t {
		case metric.PublishLatency:
			return b[endKey{topic, group, toSend}]
		case metric.RequestLatency:
			return b[endKey{topic, group, toAsk}]
		case metric.E2ELatency:
			return b[endKey{topic, group, toDeliver}]
		}
		return nil // of what failed nobody knows
	}
}
