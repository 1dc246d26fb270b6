package engine

import (
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Labels name a series of measurements.
type Labels struct {
	Broker string // the address, without credentials
	Driver string
	Topic  string
	Group  string // of consumers, see [GroupLabel]
	Tags   any    // the caller's own label, such as k6's tag set; any comparable value
}

// Series is what was measured under one set of labels. Its methods may be called concurrently, and
// allocate only in the first use of a phase and for the first error of a kind.
type Series struct {
	Labels
	phases    *phases
	shards    int
	counts    [mostPhases]atomic.Pointer[counts]    // by phase
	recorders [mostPhases]atomic.Pointer[recorders] // by phase
	sent      [recording.NumLoops]atomic.Bool       // something was sent so
}

// recorders are those of each trend, in each loop, in one phase.
type recorders struct {
	all  [recording.NumLoops][recording.NumTrends]*hist.Recorder
	late atomic.Bool // a value was recorded after the phase
}

func newRecorders(shards int) *recorders {
	r := &recorders{}
	for l := range r.all {
		for t := range r.all[l] {
			r.all[l][t] = hist.NewRecorder(shards)
		}
	}
	return r
}

// counts are the counters of a series in one phase.
type counts struct {
	counters [recording.NumCounters]atomic.Int64
	spans    [len(recording.Timed)]struct{ first, last atomic.Int64 }

	mu     sync.Mutex
	errors recording.Errors
}

// at returns the recorders of the phase in which something was due.
func (s *Series) at(due int64) *recorders {
	phase, present := s.phases.at(due)
	r := s.recorders[phase].Load()
	if r == nil {
		s.recorders[phase].CompareAndSwap(nil, newRecorders(s.shards))
		r = s.recorders[phase].Load()
	}
	if !present {
		r.late.Store(true)
	}
	return r
}

// now returns the counts of the present phase.
func (s *Series) now() *counts {
	phase := s.phases.present()
	c := s.counts[phase].Load()
	if c == nil {
		s.counts[phase].CompareAndSwap(nil, &counts{errors: recording.Errors{}})
		c = s.counts[phase].Load()
	}
	return c
}

// record records a latency of a message that was due at an instant.
func (s *Series) record(shard uint32, l recording.Loop, t recording.Trend, due, ns int64) {
	s.at(due).all[l][t].Record(shard, ns)
}

func (s *Series) recordN(shard uint32, l recording.Loop, t recording.Trend, due, ns, n int64) {
	s.at(due).all[l][t].RecordN(shard, ns, uint64(n)) //gosec:disable G115 -- a count, far below the limit
}

// same records values of which many in a row are equal, like those of messages that came together:
// each run of them at once. flush records what it holds.
type same struct {
	shard uint32
	trend recording.Trend
	to    *hist.Recorder
	ns, n int64
}

func (r *same) record(at *recorders, l recording.Loop, ns int64) {
	if to := at.all[l][r.trend]; ns != r.ns || to != r.to {
		r.flush()
		r.ns, r.to = ns, to
	}
	r.n++
}

func (r *same) flush() {
	if r.n > 0 {
		r.to.RecordN(r.shard, r.ns, uint64(r.n))
	}
	r.n = 0
}

// count adds to a counter with a span.
func (s *Series) count(c recording.Counter, n, at int64) {
	now := s.now()
	now.counters[c].Add(n)
	for i := range recording.Timed {
		if recording.Timed[i] != c {
			continue
		}
		span := &now.spans[i]
		if span.first.Load() == 0 {
			span.first.CompareAndSwap(0, at)
		}
		if at > span.last.Load() {
			span.last.Store(at)
		}
	}
}

func (s *Series) add(c recording.Counter, n int64) { s.now().counters[c].Add(n) }

// Count returns the present value of a counter.
func (s *Series) Count(c recording.Counter) (n int64) {
	for i := range s.counts {
		if in := s.counts[i].Load(); in != nil {
			n += in.counters[c].Load()
		}
	}
	return n
}

// Abandon counts arrivals that were never sent as due.
func (s *Series) Abandon(n uint64) { s.add(recording.Due, int64(n)) } //gosec:disable G115 -- a count

// Fail counts an error of an operation of the caller, such as "connect".
func (s *Series) Fail(op string, kind driver.Kind) { s.fail(op, kind) }

func (s *Series) fail(op string, kind driver.Kind) {
	now := s.now()
	now.mu.Lock()
	defer now.mu.Unlock()
	now.errors[recording.ErrorKey{Op: op, Kind: string(kind)}]++
}

// mostShards is how many shards a recorder has at most.
const mostShards = 8

// Meter holds every series of a run.
type Meter struct {
	shards int
	phases *phases
	mu     sync.RWMutex
	series map[Labels]*Series
	order  []*Series
}

func newMeter(shards int) *Meter {
	return &Meter{shards: shards, phases: newPhases(), series: map[Labels]*Series{}}
}

// Series finds or makes the series of some labels. The look-up takes a lock: keep the series.
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
	s = &Series{Labels: l, phases: m.phases, shards: m.shards}
	m.series[l] = s
	m.order = append(m.order, s)
	return s
}

// All lists the series in the order in which they were made.
func (m *Meter) All() []*Series {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.order[:len(m.order):len(m.order)]
}
