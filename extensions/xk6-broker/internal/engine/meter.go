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

// Fail counts an error of an operation.
func (s *Series) Fail(op string, kind driver.Kind) {
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

// Measured is what a series measured in a stretch of time. It does not change.
type Measured struct {
	Counters recording.Counts
	Trends   Distributions
	Errors   recording.Errors
	Spans    recording.Spans
}

// Distributions are those of each trend, in each loop; nil if nothing was measured.
type Distributions [recording.NumLoops][recording.NumTrends]*hist.Histogram

// Trend returns a distribution, empty if nothing was measured. It must not be changed.
func (d *Distributions) Trend(l recording.Loop, t recording.Trend) *hist.Histogram {
	if h := d[l][t]; h != nil {
		return h
	}
	return &hist.Histogram{}
}

// everyPhase is in the place of a phase.
const everyPhase = -1

// measured returns what the series has measured so far in a phase, or in all.
func (s *Series) measured(phase int) *Measured {
	m := &Measured{Trends: s.distributions(phase), Errors: recording.Errors{}}
	for p := range s.counts {
		if c := s.counts[p].Load(); c != nil && (phase == everyPhase || p == phase) {
			c.addTo(m)
		}
	}
	return m
}

func (c *counts) addTo(m *Measured) {
	for i := range c.counters {
		m.Counters[i] += c.counters[i].Load()
	}
	for i := range c.spans {
		m.Spans[i] = m.Spans[i].And(recording.Span{First: c.spans[i].first.Load(), Last: c.spans[i].last.Load()})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for labels, n := range c.errors {
		m.Errors[labels] += n
	}
}

// since returns what was measured after an earlier time; nil is the start. The spans are those since
// the start.
func (m *Measured) since(earlier *Measured) Measured {
	if earlier == nil {
		earlier = &Measured{}
	}
	d := Measured{Trends: m.Trends.Since(&earlier.Trends), Errors: recording.Errors{}, Spans: m.Spans}
	for i := range d.Counters {
		d.Counters[i] = m.Counters[i] - earlier.Counters[i]
	}
	for labels, n := range m.Errors {
		if more := n - earlier.Errors[labels]; more > 0 {
			d.Errors[labels] = more
		}
	}
	return d
}

// empty reports whether nothing was measured.
func (m *Measured) empty() bool {
	return m.Counters == (recording.Counts{}) && m.Trends == (Distributions{}) && len(m.Errors) == 0
}

// Failed returns how many messages a trend of the producers' side lacks because their sends failed in
// that loop. Those that were never handed over count in both loops.
func (m *Measured) Failed(l recording.Loop, t recording.Trend) uint64 {
	var sends, failed int64
	for labels, n := range m.Errors {
		if labels.Op == "send" || labels.Op == "request" {
			sends += n
		}
		if labels.Op == t.Operation() {
			failed += n
		}
	}
	other := int64(m.Trends.Trend(1-l, recording.FailedLatency).Count()) //gosec:disable G115 -- a count
	return uint64(max(0, min(failed, sends-other)))                      //gosec:disable G115 -- not negative
}

// Distributions returns those of the series so far.
func (s *Series) Distributions() Distributions { return s.distributions(everyPhase) }

// Trend returns the distribution of a trend so far.
func (s *Series) Trend(l recording.Loop, t recording.Trend) *hist.Histogram {
	d := s.distributions(everyPhase)
	return d.Trend(l, t)
}

// distributions returns those of the series so far in a phase, or in all.
func (s *Series) distributions(phase int) (all Distributions) {
	for l := range recording.Loop(recording.NumLoops) {
		for t := range recording.Trend(recording.NumTrends) {
			var found []*hist.Recorder
			for p := range s.recorders {
				if r := s.recorders[p].Load(); r != nil && (phase == everyPhase || p == phase) {
					found = append(found, r.all[l][t])
				}
			}
			if len(found) == 0 {
				continue
			}
			if h := found[0].Snapshot(found[1:]...); h.Count() > 0 || h.Negative() > 0 {
				all[l][t] = h
			}
		}
	}
	return all
}

// Since returns what was measured after an earlier time.
func (d Distributions) Since(earlier *Distributions) Distributions {
	for l := range d {
		for t, now := range d[l] {
			switch before := earlier[l][t]; {
			case now == nil || before == nil:
			case now.Count() == before.Count() && now.Negative() == before.Negative():
				d[l][t] = nil
			default:
				d[l][t] = now.Sub(before)
			}
		}
	}
	return d
}

// wasLate reports whether anything was recorded in a phase after it, since the last call.
func (s *Series) wasLate(phase int) bool {
	r := s.recorders[phase].Load()
	return r != nil && r.late.Swap(false)
}
