package load

import (
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// Labels tell one series of measurements from another.
type Labels struct {
	Broker string // the address, without credentials
	Driver string
	Topic  string
	Group  string // of consumers; [Subscribers] for those that each get every message
	// Tags is the caller's own label, such as k6's tag set; any comparable value.
	Tags any
}

// Series is what was measured under one set of labels. All its methods may be called concurrently and none allocates,
// but for the first error of a kind.
type Series struct {
	Labels
	*tally
	recorders
	lanes lanes
}

// recorders are those of each trend, in each loop.
type recorders [metric.NumLoops][metric.NumTrends]*hist.Recorder

func newRecorders(shards int) (all recorders) {
	for l := range all {
		for t := range all[l] {
			all[l][t] = hist.NewRecorder(shards)
		}
	}
	return all
}

// tally is what a series counts, whichever of its lanes measures.
type tally struct {
	*crossings

	counters [metric.NumCounters]atomic.Int64
	answered atomic.Int64                 // requests that had their replies
	active   *activities                  // of the topic
	sent     [metric.NumLoops]atomic.Bool // something was sent so

	mu     sync.Mutex
	errors map[ErrorLabels]*int64
}

// ErrorLabels tell errors apart.
type ErrorLabels struct {
	Op   string
	Kind driver.Kind
}

func (s *Series) record(shard uint32, l metric.Loop, t metric.Trend, ns int64) {
	s.recorders[l][t].Record(shard, ns)
}

func (s *Series) recordN(shard uint32, l metric.Loop, t metric.Trend, ns, n int64) {
	s.recorders[l][t].RecordN(shard, ns, uint64(n)) //gosec:disable G115 -- a count, far below the limit
}

// same records values of which many in a row are equal, as those of messages are that came together: a run of them at once. What
// it holds is recorded by flush.
type same struct {
	series *Series
	shard  uint32
	trend  metric.Trend
	loop   metric.Loop
	ns, n  int64
}

func (r *same) record(l metric.Loop, ns int64) {
	if ns != r.ns || l != r.loop {
		r.flush()
		r.ns, r.loop = ns, l
	}
	r.n++
}

func (r *same) flush() {
	r.series.recordN(r.shard, r.loop, r.trend, r.ns, r.n)
	r.n = 0
}

// count adds to a counter of those that are timed.
func (s *Series) count(c metric.Counter, n, at int64) {
	s.counters[c].Add(n)
	for i := range timed {
		if timed[i] == c {
			s.active[i].note(at)
		}
	}
}

func (s *Series) add(c metric.Counter, n int64) { s.counters[c].Add(n) }

// Count is the present value of a counter.
func (s *Series) Count(c metric.Counter) int64 { return s.counters[c].Load() }

// Trend is a copy of the distribution of a trend so far.
func (s *Series) Trend(l metric.Loop, t metric.Trend) *hist.Histogram {
	return s.recorders[l][t].Snapshot(s.lanes.of(l, t)...)
}

// Errors is a copy of the error counts so far.
func (s *Series) Errors() map[ErrorLabels]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[ErrorLabels]int64, len(s.errors))
	for labels, n := range s.errors {
		counts[labels] = *n
	}
	return counts
}

// Fail counts an error of an operation that the engine does not run itself, such as "connect".
func (s *Series) Fail(op string, kind driver.Kind) { s.fail(op, kind) }

func (s *Series) fail(op string, kind driver.Kind) {
	labels := ErrorLabels{op, kind}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.errors[labels]
	if !ok {
		n = new(int64)
		s.errors[labels] = n
	}
	*n++
}

// mostShards is how many shards a recorder has at most: more goroutines than that are seldom in one at a time.
const mostShards = 8

// Meter holds every series of a run.
type Meter struct {
	shards int
	mu     sync.RWMutex
	series map[Labels]*Series
	order  []*Series
	edges  *edges
	active map[topicKey]*activities
}

func newMeter(shards int) *Meter {
	return &Meter{shards: shards, series: map[Labels]*Series{}, edges: newEdges(), active: map[topicKey]*activities{}}
}

// Series finds or makes the series of some labels. Callers keep what they get: the look-up takes a lock.
func (m *Meter) Series(l Labels) *Series {
	m.mu.RLock()
	s, ok := m.series[l]
	m.mu.RUnlock()
	if ok {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.series[l]; ok {
		return s
	}
	key := topicKey{l.Broker, l.Topic}
	if m.active[key] == nil {
		m.active[key] = &activities{}
	}
	s = &Series{Labels: l, tally: &tally{crossings: m.edges.of(key), active: m.active[key], errors: map[ErrorLabels]*int64{}}, recorders: newRecorders(m.shards)}
	m.series[l] = s
	m.order = append(m.order, s)
	return s
}

// phaseEnds adds the squares of the pauses of each topic.
func (m *Meter) phaseEnds(now int64, to map[topicKey]*squares) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for key, all := range m.active {
		if to[key] == nil {
			to[key] = &squares{}
		}
		for i := range all {
			to[key][i] += all[i].phaseEnds(now)
		}
	}
}

// activities are those of a topic; nil where it was not used.
func (m *Meter) activities(key topicKey) *activities {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.active[key]
}

// All lists the series in the order they were made.
func (m *Meter) All() []*Series {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.order[:len(m.order):len(m.order)]
}
