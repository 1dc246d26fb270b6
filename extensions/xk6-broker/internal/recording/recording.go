// Package recording holds what a process measured, second by second: for each interval and series
// the counters and one histogram of each latency. Totals, phases, charts and interval logs are sums
// of its records, and joining processes is joining their recordings.
package recording

import (
	"cmp"
	"maps"
	"slices"
	"unsafe"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Key names a series.
type Key struct {
	Broker string `json:"broker"` // address, without credentials
	Driver string `json:"driver"`
	Topic  string `json:"topic"`
	Group  string `json:"group,omitempty"` // of consumers; "" for the producers' side
	Phase  string `json:"phase,omitempty"` // "" if the run has none
}

// Record is what one series measured in an interval. A count belongs to the phase in which it
// happened, a latency to the phase in which its message was due.
type Record struct {
	Key
	Counts    Counts    `json:"counts,omitzero"`
	Errors    Errors    `json:"errors,omitempty"`
	Latencies Latencies `json:"latencies,omitzero"`
	Spans     Spans     `json:"spans,omitzero"`

	// Seen at the end of the interval; of joined intervals the most.
	Outstanding uint64 `json:"outstanding,omitempty"` // expected by the group and not yet received
	Backlog     *int64 `json:"backlog,omitempty"`     // reported by the broker for the group
}

func (r Record) compare(o Record) int {
	return cmp.Or(cmp.Compare(r.Broker, o.Broker), cmp.Compare(r.Driver, o.Driver), cmp.Compare(r.Topic, o.Topic),
		cmp.Compare(r.Group, o.Group), cmp.Compare(r.Phase, o.Phase))
}

// Counts are counters by [Counter].
type Counts [NumCounters]int64

// ErrorKey names errors of one sort.
type ErrorKey struct{ Op, Kind string }

func (k ErrorKey) compare(o ErrorKey) int {
	return cmp.Or(cmp.Compare(k.Op, o.Op), cmp.Compare(k.Kind, o.Kind))
}

// Errors are counts of errors.
type Errors map[ErrorKey]int64

// Latencies are distributions by [Loop] and [Trend], some of them empty.
type Latencies [NumLoops][NumTrends]hist.Packed

// Timed are the counters with a [Span].
var Timed = [...]Counter{Sent, Confirmed, Received}

// Span is when something was counted first and last, ns since the Unix epoch; 0 if it was not.
type Span struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// And returns the time from the earlier beginning to the later end.
func (s Span) And(o Span) Span {
	switch {
	case o.First == 0:
		return s
	case s.First == 0:
		return o
	}
	return Span{min(s.First, o.First), max(s.Last, o.Last)}
}

// Spans are the spans of the [Timed] counters.
type Spans [len(Timed)]Span

func (s Spans) and(o Spans) Spans {
	for i := range s {
		s[i] = s[i].And(o[i])
	}
	return s
}

// Interval is what one process measured between two instants.
type Interval struct {
	From     int64                  `json:"from"`              // ns since the Unix epoch
	To       int64                  `json:"to"`                // ns since the Unix epoch
	Phase    string                 `json:"phase,omitempty"`   // in force at its end
	InFlight int64                  `json:"inFlight"`          // messages handed over and not yet done; the most
	CPU      float64                `json:"cpu"`               // share of its CPUs that the process used, 0 to 1
	Busiest  float64                `json:"busiest"`           // the same in the worst window under load
	Hiccups  map[string]hist.Packed `json:"hiccups,omitempty"` // of the machine, by phase
	Records  []Record               `json:"records"`           // ordered by their keys

	Process int `json:"-"` // that measured it, in a recording of several, from 0
}

// Entry is a time in which a phase was in force.
type Entry struct {
	Phase   string `json:"phase"`
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Process int    `json:"-"`
}

// Recording is what the processes of a test measured. The zero value is empty.
// It is not safe for concurrent use.
type Recording struct {
	intervals []*Interval
	entries   []Entry
	bytes     int

	most    int // how many intervals there may be
	width   int // how many added intervals make one
	longer  int // the intervals before it are twice as wide
	pending int // how many added intervals the last one has, if it is not complete
}

// A recording is bounded. Beyond these limits neighbouring intervals are joined in pairs, and all
// become twice as long.
const (
	mostIntervals  = 1200
	leastIntervals = 30
	mostBytes      = 32 << 20
)

// Intervals lists the intervals in the order of their ends. They must not be changed.
func (r *Recording) Intervals() []*Interval { return r.intervals }

// Entries lists the times of the phases in the order in which they began.
func (r *Recording) Entries() []Entry { return r.entries }

// Add adds the interval after the last one.
func (r *Recording) Add(i *Interval) {
	slices.SortFunc(i.Records, Record.compare)
	r.enter(Entry{Phase: i.Phase, From: i.From, To: i.To})
	if r.width == 0 {
		r.width, r.most = 1, mostIntervals
	}
	if r.pending == 0 {
		r.intervals = append(r.intervals, i)
		r.bytes += i.size()
	} else {
		r.join(len(r.intervals)-1, i)
	}
	r.pending = (r.pending + 1) % r.width
	for r.pending == 0 && (len(r.intervals) >= r.most || r.bytes > mostBytes && len(r.intervals) > leastIntervals) {
		r.shorten()
	}
}

// enter extends the last stretch, or begins one.
func (r *Recording) enter(s Entry) {
	last := len(r.entries) - 1
	switch {
	case last >= 0 && s.From < r.entries[last].To && s.To <= r.entries[last].To: // it was in the header of a file
	case last >= 0 && r.entries[last].Phase == s.Phase:
		r.entries[last].To = s.To
	default:
		r.entries = append(r.entries, s)
	}
}

// shorten joins the first two intervals that are not yet joined.
func (r *Recording) shorten() {
	r.join(r.longer, r.intervals[r.longer+1])
	r.bytes -= r.intervals[r.longer+1].size()
	r.intervals = slices.Delete(r.intervals, r.longer+1, r.longer+2)
	if r.longer++; r.longer >= len(r.intervals)-1 {
		r.width, r.longer = 2*r.width, 0
	}
}

// join puts an interval together with the one at a place.
func (r *Recording) join(at int, next *Interval) {
	r.bytes -= r.intervals[at].size()
	r.intervals[at] = joined(r.intervals[at], next)
	r.bytes += r.intervals[at].size()
}

// joined returns the interval that two neighbours are together.
func joined(a, b *Interval) *Interval {
	j := &Interval{
		From: a.From, To: b.To, Phase: b.Phase, Process: a.Process,
		InFlight: max(a.InFlight, b.InFlight), Busiest: max(a.Busiest, b.Busiest), CPU: b.CPU,
		Hiccups: maps.Clone(a.Hiccups), Records: []Record{},
	}
	if length := float64(b.To - a.From); length > 0 {
		j.CPU = (a.CPU*float64(a.To-a.From) + b.CPU*float64(b.To-b.From)) / length
	}
	for phase, h := range b.Hiccups {
		if j.Hiccups == nil {
			j.Hiccups = map[string]hist.Packed{}
		}
		j.Hiccups[phase] = j.Hiccups[phase].With(h)
	}
	both := slices.Concat(a.Records, b.Records)
	slices.SortStableFunc(both, Record.compare)
	for k := range both {
		if last := len(j.Records) - 1; last >= 0 && j.Records[last].Key == both[k].Key {
			j.Records[last] = j.Records[last].with(&both[k])
		} else {
			j.Records = append(j.Records, both[k])
		}
	}
	return j
}

// with returns what both records of one key have.
func (r Record) with(o *Record) Record {
	for c, n := range o.Counts {
		r.Counts[c] += n
	}
	r.Errors = r.Errors.with(o.Errors)
	for l := range o.Latencies {
		for t, h := range o.Latencies[l] {
			r.Latencies[l][t] = r.Latencies[l][t].With(h)
		}
	}
	r.Spans = r.Spans.and(o.Spans)
	r.Outstanding = max(r.Outstanding, o.Outstanding)
	r.Backlog = most(r.Backlog, o.Backlog)
	return r
}

func (e Errors) with(o Errors) Errors {
	if len(o) == 0 {
		return e
	}
	both := maps.Clone(e)
	if both == nil {
		both = Errors{}
	}
	for key, n := range o {
		both[key] += n
	}
	return both
}

func most(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// size is about how many bytes of memory the interval takes.
func (i *Interval) size() int {
	n := 0
	for _, h := range i.Hiccups {
		n += len(h.HDR)
	}
	for _, r := range i.Records {
		n += int(unsafe.Sizeof(r))
		for l := range r.Latencies {
			for _, h := range r.Latencies[l] {
				n += len(h.HDR)
			}
		}
	}
	return n
}

// Join returns the recordings of several processes as one, with the keys that a function gives.
// They are not changed.
func Join(all []*Recording, rename func(Key) Key) *Recording {
	joined := &Recording{}
	for process, r := range all {
		for _, i := range r.intervals {
			i := *i
			i.Process, i.Records = process, slices.Clone(i.Records)
			for k := range i.Records {
				i.Records[k].Key = rename(i.Records[k].Key)
			}
			joined.intervals = append(joined.intervals, &i)
		}
		for _, e := range r.entries {
			e.Process = process
			joined.entries = append(joined.entries, e)
		}
	}
	slices.SortStableFunc(joined.intervals, func(a, b *Interval) int { return cmp.Compare(a.To, b.To) })
	slices.SortStableFunc(joined.entries, func(a, b Entry) int { return cmp.Compare(a.From, b.From) })
	return joined
}
