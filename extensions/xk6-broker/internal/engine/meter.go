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

// Series holds the measurements under one set of labels. Its methods may be called concurrently,
// and allocate only in the first use of a phase and for the first error of a kind.
type Series struct {
	Labels
	phases *phases
	shards int
	parts  [mostPhases]atomic.Pointer[part] // by phase
}

// part holds the measurements of a series in one phase.
type part struct {
	trends [recording.NumLoops][recording.NumTrends]*hist.Recorder
	late   atomic.Bool // a latency was recorded after the phase
	mu     sync.Mutex
	errors recording.Errors

	_        [64]byte // each message changes the counters
	counters [recording.NumCounters]atomic.Int64
	spans    [len(recording.Timed)]struct{ first, last atomic.Int64 }
}

func newPart(shards int) *part {
	p := &part{errors: recording.Errors{}}
	for l := range p.trends {
		for t := range p.trends[l] {
			p.trends[l][t] = hist.NewRecorder(shards)
		}
	}
	return p
}

// part returns the measurements of a phase.
func (s *Series) part(phase int) *part {
	p := s.parts[phase].Load()
	if p == nil {
		s.parts[phase].CompareAndSwap(nil, newPart(s.shards))
		p = s.parts[phase].Load()
	}
	return p
}

// at returns the measurements of the phase in which something was due.
func (s *Series) at(due int64) *part {
	phase, present := s.phases.at(due)
	p := s.part(phase)
	if !present {
		p.late.Store(true)
	}
	return p
}

// now returns the measurements of the present phase.
func (s *Series) now() *part { return s.part(s.phases.present()) }

// record records a latency of a message that was due at an instant.
func (s *Series) record(shard uint32, l recording.Loop, t recording.Trend, due, ns int64) {
	s.at(due).trends[l][t].Record(shard, ns)
}

// same records values that are often equal in a row, like the ones of messages that arrive together:
// each run of equal values at once. flush records the values that it holds.
type same struct {
	shard uint32
	trend recording.Trend
	to    *hist.Recorder
	ns, n int64
}

func (r *same) record(at *part, l recording.Loop, ns int64) {
	if to := at.trends[l][r.trend]; ns != r.ns || to != r.to {
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
	for i := range s.parts {
		if p := s.parts[i].Load(); p != nil {
			n += p.counters[c].Load()
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

// Unsent fails messages of an operation that were due at one time and were never handed over.
func (s *Series) Unsent(op string, n int, at Timing, kind driver.Kind) {
	loop, now, due := recording.Open, driver.Now(), at.Due
	if due == 0 {
		loop, due = recording.Closed, now
	} else {
		s.add(recording.Due, int64(n))
	}
	for range n {
		s.Fail(op, kind)
		s.record(0, loop, recording.FailedLatency, due, now-due)
	}
}

// mostShards is the greatest number of shards of a recorder.
const mostShards = 8

// Meter holds every series of a run.
type Meter struct {
	shards int
	phases *phases
	mu     sync.Mutex
	series map[Labels]*Series
	order  []*Series
}

func newMeter(shards int) *Meter {
	return &Meter{shards: shards, phases: newPhases(), series: map[Labels]*Series{}}
}

// Series finds or makes the series of some labels. The look-up takes a lock: keep the series.
func (m *Meter) Series(l Labels) *Series {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.series[l]; ok {
		return s
	}
	s := &Series{Labels: l, phases: m.phases, shards: m.shards}
	m.series[l] = s
	m.order = append(m.order, s)
	return s
}

// All lists the series in the order in which they were made.
func (m *Meter) All() []*Series {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.order[:len(m.order):len(m.order)]
}

// Measured holds the measurements of a series in some time. It does not change.
type Measured struct {
	Counters recording.Counts
	Trends   Distributions
	Errors   recording.Errors
	Spans    recording.Spans
}

// Distributions are the values of each trend, in each loop; nil if nothing was measured.
type Distributions [recording.NumLoops][recording.NumTrends]*hist.Histogram

// Trend returns a distribution, empty if nothing was measured. It must not be changed.
func (d *Distributions) Trend(l recording.Loop, t recording.Trend) *hist.Histogram {
	if h := d[l][t]; h != nil {
		return h
	}
	return &hist.Histogram{}
}

// Since returns the values that were measured after an earlier time.
func (d Distributions) Since(earlier *Distributions) Distributions {
	for l := range d {
		for t, now := range d[l] {
			switch before := earlier[l][t]; {
			case now == nil || before == nil:
			case now.Count() == before.Count():
				d[l][t] = nil
			default:
				d[l][t] = now.Sub(before)
			}
		}
	}
	return d
}

// Distributions returns the values of the series so far.
func (s *Series) Distributions() Distributions { return s.measured(everyPhase).Trends }

// Trend returns the distribution of a trend so far.
func (s *Series) Trend(l recording.Loop, t recording.Trend) *hist.Histogram {
	d := s.Distributions()
	return d.Trend(l, t)
}

// everyPhase stands for all phases.
const everyPhase = -1

// measured returns the measurements of the series so far in a phase, or in all.
func (s *Series) measured(phase int) *Measured {
	m := &Measured{Errors: recording.Errors{}}
	var trends [recording.NumLoops][recording.NumTrends][]*hist.Recorder
	for i := range s.parts {
		p := s.parts[i].Load()
		if p == nil || phase != everyPhase && i != phase {
			continue
		}
		p.addTo(m)
		for l := range trends {
			for t := range trends[l] {
				trends[l][t] = append(trends[l][t], p.trends[l][t])
			}
		}
	}
	for l := range trends {
		for t, all := range trends[l] {
			if len(all) == 0 {
				continue
			}
			if h := all[0].Snapshot(all[1:]...); h.Count() > 0 {
				m.Trends[l][t] = h
			}
		}
	}
	return m
}

// addTo adds the counters, spans and errors.
func (p *part) addTo(m *Measured) {
	for i := range p.counters {
		m.Counters[i] += p.counters[i].Load()
	}
	for i := range p.spans {
		m.Spans[i] = m.Spans[i].And(recording.Span{First: p.spans[i].first.Load(), Last: p.spans[i].last.Load()})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, n := range p.errors {
		m.Errors[key] += n
	}
}

// since returns the measurements after an earlier time; nil is the start. The spans are those since
// the start.
func (m *Measured) since(earlier *Measured) Measured {
	if earlier == nil {
		earlier = &Measured{}
	}
	d := Measured{Trends: m.Trends.Since(&earlier.Trends), Errors: recording.Errors{}, Spans: m.Spans}
	for i := range d.Counters {
		d.Counters[i] = m.Counters[i] - earlier.Counters[i]
	}
	for key, n := range m.Errors {
		if more := n - earlier.Errors[key]; more > 0 {
			d.Errors[key] = more
		}
	}
	return d
}

// empty reports whether nothing was measured.
func (m *Measured) empty() bool {
	return m.Counters == (recording.Counts{}) && m.Trends == (Distributions{}) && len(m.Errors) == 0
}

// operations are the operations that the trends of the producers' side measure.
var operations = map[recording.Trend]string{
	recording.PublishLatency: "send", recording.PublishTime: "send",
	recording.RequestLatency: "request", recording.RequestTime: "request",
}

// Failed returns the number of messages that a trend of the producers' side lacks because their
// sends failed, in either loop.
func (m *Measured) Failed(t recording.Trend) (n uint64) {
	for key, errors := range m.Errors {
		if key.Op == operations[t] {
			n += uint64(errors) //gosec:disable G115 -- a count
		}
	}
	return n
}
