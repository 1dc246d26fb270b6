package result

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Measure fills in what was measured, from a recording alone: the phases, and the counts, errors, latencies, spans and
// histories of the topics and groups that the result has. Counters that a topic has already stay, at 0 if nothing was counted.
func (r *Result) Measure(rec *recording.Recording) {
	r.Recording = rec
	sums := recording.Sum(rec.Intervals(), nil)
	r.measurePhases(rec, sums)
	if r.Platform != nil {
		r.Platform.Hiccups = cmp.Or(recording.Hiccups(rec.Intervals(), "", true), &hist.Histogram{})
	}
	cells := r.cells()
	for i := range r.Topics {
		t := &r.Topics[i]
		own := t.own(sums)
		t.measureRun(r, own)
		t.measurePhases(r, own)
		t.measureHistory(cells)
	}
}

// own returns the sums of the topic.
func (t *Topic) own(sums map[recording.Key]*recording.Sums) map[recording.Key]*recording.Sums {
	own := map[recording.Key]*recording.Sums{}
	for key, s := range sums {
		if t.compare(key) == 0 {
			own[key] = s
		}
	}
	return own
}

// compare compares the topic of a key with this one.
func (t *Topic) compare(k recording.Key) int {
	return cmp.Or(cmp.Compare(k.Broker, t.Broker), cmp.Compare(k.Driver, t.Driver), cmp.Compare(k.Topic, t.Topic))
}

// in returns the topic's records of an interval.
func (t *Topic) in(i *recording.Interval) []recording.Record {
	first, _ := slices.BinarySearchFunc(i.Records, 0, func(rec recording.Record, _ int) int {
		return cmp.Or(t.compare(rec.Key), 1) // the first that is not less
	})
	end := first
	for end < len(i.Records) && t.compare(i.Records[end].Key) == 0 {
		end++
	}
	return i.Records[first:end]
}

// trendName is what the topic calls a trend. The latencies of a topic without open loop have the plain names.
func (t *Topic) trendName(l recording.Loop, of recording.Trend) string {
	name := of.In(l)
	if !t.OpenLoop {
		name = strings.TrimSuffix(name, recording.ClosedSuffix)
	}
	return name
}

// measureRun fills in what was measured in the whole run.
func (t *Topic) measureRun(r *Result, own map[recording.Key]*recording.Sums) {
	for _, s := range own { // messages that came from elsewhere may be of an open loop, too
		t.OpenLoop = t.OpenLoop || s.Latencies[recording.Open][recording.E2ELatency] != nil
	}
	all := t.window(own, nil)
	for name := range t.Counts {
		all.Counts[name] += 0
	}
	t.Counts, t.Errors, t.Trends = all.Counts, all.Errors, all.Trends
	for i := range t.Groups {
		t.Groups[i].Trends = all.Groups[i].Trends
	}
	var spans recording.Spans
	for _, s := range own {
		for i := range spans {
			spans[i] = spans[i].And(s.Spans[i])
		}
	}
	t.Spans = map[string]Span{}
	for i, c := range recording.Timed {
		if s := spans[i]; s.First != 0 {
			t.Spans[c.String()] = Span{r.since(s.First), r.since(s.Last)}
		}
	}
}

// measurePhases fills in what was measured in each phase.
func (t *Topic) measurePhases(r *Result, own map[recording.Key]*recording.Sums) {
	t.Phases = nil
	for _, p := range r.Phases {
		if t.Phases == nil {
			t.Phases = map[string]Window{}
		}
		t.Phases[p.Name] = t.window(own, func(k recording.Key) bool { return cmp.Or(k.Phase, Starting) == p.Name })
	}
}

// window adds up the sums that match. A nil match takes all.
func (t *Topic) window(own map[recording.Key]*recording.Sums, match func(recording.Key) bool) Window {
	w := Window{Counts: map[string]int64{}, Errors: []ErrorCount{}, Trends: map[string]*hist.Histogram{}, Groups: []WindowGroup{}}
	for i := range t.Groups {
		w.Groups = append(w.Groups, WindowGroup{Group: t.Groups[i].Group, Trends: map[string]*hist.Histogram{}})
	}
	for key, s := range own {
		if match != nil && !match(key) {
			continue
		}
		for c, n := range s.Counts {
			if n != 0 {
				w.Counts[recording.Counter(c).String()] += n //gosec:disable G115 -- an index
			}
		}
		for e, n := range s.Errors {
			w.Errors = addErrors(w.Errors, ErrorCount{Op: e.Op, Kind: e.Kind, Count: n})
		}
		t.addLatencies(w.Trends, s, func(recording.Trend) bool { return true })
		if g := slices.IndexFunc(t.Groups, func(g Group) bool { return g.Group == key.Group }); g >= 0 {
			of := &w.Groups[g]
			of.Received += uint64(s.Counts[recording.Received])                                                           //gosec:disable G115 -- a count
			of.Settled += uint64(s.Counts[recording.Acked] + s.Counts[recording.Requeued] + s.Counts[recording.Rejected]) //gosec:disable G115 -- a count
			t.addLatencies(of.Trends, s, recording.Trend.Consumers)
		}
	}
	return w
}

func (t *Topic) addLatencies(to map[string]*hist.Histogram, s *recording.Sums, of func(recording.Trend) bool) {
	for l := range s.Latencies {
		for trend, h := range s.Latencies[l] {
			if h != nil && of(recording.Trend(trend)) { //gosec:disable G115 -- an index
				name := t.trendName(recording.Loop(l), recording.Trend(trend)) //gosec:disable G115 -- indices
				to[name] = hist.Merged(to[name], h)
			}
		}
	}
}

// since is an instant in seconds from the start.
func (r *Result) since(at int64) float64 { return time.Duration(at - r.Started.UnixNano()).Seconds() }

// cell is an interval of a history: one of a process, or those of several processes that end in it.
type cell struct {
	at, seconds float64
	intervals   []*recording.Interval
}

// cells returns the intervals of the histories. Those of several processes are as wide as the widest of theirs.
func (r *Result) cells() (cells []cell) {
	all := r.Recording.Intervals()
	several, widest := false, int64(1)
	for _, i := range all {
		several = several || i.Process > 0
		widest = max(widest, int64(math.Round(time.Duration(i.To-i.From).Seconds())))
	}
	if !several {
		for _, i := range all {
			cells = append(cells, cell{r.since(i.To), time.Duration(i.To - i.From).Seconds(), []*recording.Interval{i}})
		}
		return cells
	}
	width := widest * int64(time.Second)
	end := func(at int64) int64 { return (at + width - 1) / width * width }
	first := end(r.Started.UnixNano() + 1)
	for _, i := range all {
		at := r.since(max(first, end(time.Unix(0, i.To).Round(time.Second).UnixNano())))
		if last := len(cells) - 1; last < 0 || cells[last].at != at {
			cells = append(cells, cell{at: at, seconds: float64(widest)})
		}
		of := &cells[len(cells)-1]
		of.intervals = append(of.intervals, i)
	}
	return cells
}

// measureHistory fills in the history and the latencies over time.
func (t *Topic) measureHistory(cells []cell) {
	t.History, t.OverTime = make([]Point, len(cells)), map[string][]Summary{}
	latencies := map[string][][]hist.Packed{} // by the name of the trend, of each cell
	for n, c := range cells {
		t.History[n] = t.point(c)
		for _, i := range c.intervals {
			records := t.in(i)
			for k := range records {
				for l := range records[k].Latencies {
					for trend, h := range records[k].Latencies[l] {
						if h.Empty() {
							continue
						}
						name := t.trendName(recording.Loop(l), recording.Trend(trend)) //gosec:disable G115 -- indices
						if latencies[name] == nil {
							latencies[name] = make([][]hist.Packed, len(cells))
						}
						latencies[name][n] = append(latencies[name][n], h)
					}
				}
			}
		}
	}
	for name, all := range latencies {
		counts := make([]uint64, len(all))
		for n, packed := range all {
			for _, h := range packed {
				counts[n] += h.Count
			}
		}
		first := 0
		for joined := range slices.Chunk(all, lengthFor(counts)) {
			h := &hist.Histogram{}
			for _, packed := range slices.Concat(joined...) {
				packed.AddTo(h)
			}
			from, to := cells[first], cells[first+len(joined)-1]
			t.OverTime[name] = append(t.OverTime[name], summarise(h, to.at, to.at-from.at+from.seconds))
			first += len(joined)
		}
	}
}

// point returns what the topic has of a cell: what waits is the most of each process, added up.
func (t *Topic) point(c cell) Point {
	p := Point{At: c.at, Seconds: c.seconds, Counts: map[string]int64{}, ErrorKinds: map[string]int64{}}
	inFlight, outstanding := map[int]int64{}, map[int]uint64{}
	for _, i := range c.intervals {
		p.CPU, p.Busiest = max(p.CPU, i.CPU), max(p.Busiest, i.Busiest)
		inFlight[i.Process] = max(inFlight[i.Process], i.InFlight)
		waiting := map[string]uint64{} // for each group
		records := t.in(i)
		for k := range records {
			rec := &records[k]
			for counter, n := range rec.Counts {
				if n != 0 {
					p.Counts[recording.Counter(counter).String()] += n //gosec:disable G115 -- an index
				}
			}
			for e, n := range rec.Errors {
				p.Errors += n
				p.ErrorKinds[e.Kind] += n
			}
			waiting[rec.Group] = max(waiting[rec.Group], rec.Outstanding)
			if rec.Backlog != nil {
				if p.Backlog == nil {
					p.Backlog = map[string]int64{}
				}
				p.Backlog[rec.Group] = max(p.Backlog[rec.Group], *rec.Backlog)
			}
		}
		var sum uint64
		for _, n := range waiting {
			sum += n
		}
		outstanding[i.Process] = max(outstanding[i.Process], sum)
	}
	for _, n := range inFlight {
		p.InFlight += n
	}
	for _, n := range outstanding {
		p.Outstanding += n
	}
	return p
}

// measurePhases fills in the phases. The time before the first named phase is one itself if anything was measured in
// it.
func (r *Result) measurePhases(rec *recording.Recording, sums map[recording.Key]*recording.Sums) {
	r.Phases, r.Leading = nil, ""
	begun := slices.ContainsFunc(rec.Stretches(), func(s recording.Stretch) bool { return s.Phase != "" })
	started := false
	for key, s := range sums {
		if cmp.Or(key.Phase, Starting) == Starting {
			started = started || s.Counts != (recording.Counts{}) || len(s.Errors) > 0 || s.Latencies != (recording.Sums{}).Latencies
		}
	}
	lengths := map[string]map[int]float64{} // by phase and process
	for _, s := range rec.Stretches() {
		name := cmp.Or(s.Phase, Starting)
		if !begun || name == Starting && !started {
			continue
		}
		p := r.Phase(name)
		if p == nil {
			hiccups := recording.Hiccups(rec.Intervals(), name, false)
			if name == Starting {
				hiccups = hist.Merged(hiccups, recording.Hiccups(rec.Intervals(), "", false))
			}
			r.Phases = append(r.Phases, Phase{Name: name, Hiccups: hiccups})
			p, lengths[name] = &r.Phases[len(r.Phases)-1], map[int]float64{}
		}
		p.Stretches = append(p.Stretches, Stretch{r.since(s.From), r.since(s.To)})
		lengths[name][s.Process] += time.Duration(s.To - s.From).Seconds()
	}
	processes := len(begins(rec))
	for i := range r.Phases {
		p := &r.Phases[i]
		p.Seconds = slices.Max(slices.Collect(maps.Values(lengths[p.Name])))
		if processes > 1 {
			p.Processes = len(lengths[p.Name])
		}
	}
	if r.Phase(Measure) != nil {
		r.Leading = Measure
	}
}

// begins lists, for each process, when it began each phase, ns since the Unix epoch.
func begins(rec *recording.Recording) (all []map[string][]int64) {
	for _, s := range rec.Stretches() {
		for len(all) <= s.Process {
			all = append(all, map[string][]int64{})
		}
		if cmp.Or(s.Phase, Starting) != Starting {
			all[s.Process][s.Phase] = append(all[s.Process][s.Phase], s.From)
		}
	}
	return all
}

// Cut adds the phase from one time to another, in seconds from the start, and lets it lead. It is cut at the nearest instants
// at which an interval of the recording begins or ends, and has the intervals between them.
func (r *Result) Cut(rec *recording.Recording, from, to float64) error {
	all := rec.Intervals()
	if len(all) == 0 {
		return errors.New("nothing was recorded")
	}
	nearest := func(at float64) int64 {
		best := all[0].From
		for _, i := range all {
			for _, edge := range []int64{i.From, i.To} {
				if math.Abs(r.since(edge)-at) < math.Abs(r.since(best)-at) {
					best = edge
				}
			}
		}
		return best
	}
	first, last := nearest(from), nearest(to)
	inside := slices.DeleteFunc(slices.Clone(all), func(i *recording.Interval) bool { return i.From < first || i.To > last })
	if len(inside) == 0 {
		return fmt.Errorf("no interval is recorded from %g s to %g s: the nearest instants are %.1f s and %.1f s", from, to, r.since(first), r.since(last))
	}
	s := Stretch{r.since(first), r.since(last)}
	p := Phase{Name: fmt.Sprintf("%.1f s to %.1f s", s.From, s.To), Stretches: []Stretch{s}, Seconds: s.To - s.From, Afterwards: true}
	if r.Phase(p.Name) != nil {
		return fmt.Errorf("the run has a phase %q", p.Name)
	}
	p.Hiccups = recording.Hiccups(inside, "", true)
	sums := recording.Sum(inside, nil)
	for i := range r.Topics {
		t := &r.Topics[i]
		if t.Phases == nil {
			t.Phases = map[string]Window{}
		}
		t.Phases[p.Name] = t.window(t.own(sums), nil)
	}
	r.Phases, r.Leading = append(r.Phases, p), p.Name
	r.Describe()
	return nil
}
