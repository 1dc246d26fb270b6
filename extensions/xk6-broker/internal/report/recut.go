package report

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

const (
	// nearest is how far an instant that is asked for may be from one at which something was collected: half of the second between two, and what
	// a busy machine makes of it.
	nearest = 0.6
	// rounding is how far instants are apart in a log, which knows milliseconds, that are the same.
	rounding = 2 * time.Millisecond
)

// Recut adds to a result, which is that of a folder, the phase from one time to another, in seconds from the start, and lets it lead. It is cut
// where the run collected what was measured, at the instants that are nearest. The distributions are added up from the interval logs, bucket by
// bucket, and the counts from the history. What these cannot give exactly is an error.
func Recut(folder string, r *result.Result, from, to float64) error {
	if len(r.Topics) == 0 {
		return errors.New("nothing was measured")
	}
	edges, err := edgesOf(r)
	if err != nil {
		return err
	}
	var s result.Stretch
	if s.From, err = nearestOf(edges, from); err != nil {
		return err
	}
	if s.To, err = nearestOf(edges, to); err != nil {
		return err
	}
	if s.From >= s.To {
		return fmt.Errorf("from %s to %s nothing was collected", inSeconds(from), inSeconds(to))
	}
	phase := result.Phase{Name: fmt.Sprintf("%s to %s", inSeconds(from), inSeconds(to)), Stretches: []result.Stretch{s}, Seconds: s.To - s.From, Afterwards: true}
	phase.About = r.Environment["processes"] != ""
	phase.Hiccups = r.Platform.Seen() // of which nothing is known over time
	if r.Phase(phase.Name) != nil {
		return fmt.Errorf("the run has a phase %q", phase.Name)
	}
	names := newNames(r)
	for i := range r.Topics {
		t := &r.Topics[i]
		w, err := window(t, s)
		if err == nil {
			err = logged(folder, names.of(t.Broker, t.Topic), r.Started, t, s, w)
		}
		if err != nil {
			return fmt.Errorf("topic %q: %w", t.Topic, err)
		}
		if t.Phases == nil {
			t.Phases = map[string]result.Window{}
		}
		w.Inherit(t)
		t.Phases[phase.Name] = *w
	}
	r.Phases = append(r.Phases, phase)
	r.Leading = phase.Name
	if phase.About {
		note := reason.New(reason.OverTime, reason.Note, reason.Values{"why": "intervals", "total": longest(r)})
		note.Phase = phase.Name
		r.Verdict.Add(note)
	}
	r.Describe()
	return nil
}

// edgesOf gives the instants at which an interval of every topic's history begins or ends, ascending. Before the first and after the last interval of a
// topic, as where it is one of a process that began later or ended earlier, there was nothing of it, and any instant will do.
func edgesOf(r *result.Result) (edges []float64, err error) {
	topics := make([][]float64, len(r.Topics))
	for i, t := range r.Topics {
		if len(t.History) == 0 {
			return nil, fmt.Errorf("topic %q has no history", t.Topic)
		}
		for _, p := range t.History {
			topics[i] = append(topics[i], p.At-p.Seconds, p.At)
		}
		slices.Sort(topics[i])
		edges = append(edges, topics[i]...)
	}
	edges = append(edges, 0, r.Seconds)
	slices.Sort(edges)
	edges = slices.CompactFunc(edges, same)
	return slices.DeleteFunc(edges, func(e float64) bool {
		return slices.ContainsFunc(topics, func(own []float64) bool {
			return own[0] < e && e < own[len(own)-1] && !slices.ContainsFunc(own, func(o float64) bool { return same(e, o) })
		})
	}), nil
}

// longest is how long the intervals of the history are at most.
func longest(r *result.Result) (seconds float64) {
	for _, t := range r.Topics {
		for _, p := range t.History {
			seconds = max(seconds, p.Seconds)
		}
	}
	return seconds
}

func same(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// nearestOf finds the edge that is nearest to an instant.
func nearestOf(edges []float64, at float64) (float64, error) {
	i, _ := slices.BinarySearch(edges, at)
	before, after := edges[max(0, i-1)], edges[min(i, len(edges)-1)]
	best := before
	if math.Abs(after-at) < math.Abs(before-at) {
		best = after
	}
	if math.Abs(best-at) > nearest {
		between := fmt.Sprintf("the nearest are %s and %s", inSeconds(before), inSeconds(after))
		if at < edges[0] || at > edges[len(edges)-1] {
			between = fmt.Sprintf("it has from %s to %s", inSeconds(edges[0]), inSeconds(edges[len(edges)-1]))
		}
		return 0, fmt.Errorf("the run cannot be cut at %s: its history, where seconds of a long run are joined, has no instant there; %s", inSeconds(at), between)
	}
	return best, nil
}

// window is what the history has of a topic in a stretch of time, without its distributions.
func window(t *result.Topic, s result.Stretch) (*result.Window, error) {
	w := &result.Window{Counts: map[string]int64{}, Errors: []result.ErrorCount{}, Trends: map[string]*hist.Histogram{}, Groups: []result.WindowGroup{}}
	kinds := map[string]int64{}
	for _, p := range t.History {
		if p.At-p.Seconds < s.From-1e-6 || p.At > s.To+1e-6 {
			continue
		}
		for name, n := range p.Counts {
			w.Counts[name] += n
		}
		for kind, n := range p.ErrorKinds {
			kinds[kind] += n
		}
		w.Underway = p.Underway // of the last one in the end
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		var ops []string
		for _, e := range t.Errors {
			if e.Kind == kind {
				ops = append(ops, e.Op)
			}
		}
		if len(ops) != 1 {
			return nil, fmt.Errorf("it had %d errors of kind %s then, and its history does not tell which of %s they were", kinds[kind], kind, strings.Join(ops, ", "))
		}
		w.Errors = append(w.Errors, result.ErrorCount{Op: ops[0], Kind: kind, Count: kinds[kind]})
	}
	for _, g := range t.Groups {
		w.Groups = append(w.Groups, result.WindowGroup{Group: g.Group, Trends: map[string]*hist.Histogram{}})
	}
	return w, nil
}

// logged adds the distributions that the logs of a topic have of a stretch of time.
func logged(folder, name string, started time.Time, t *result.Topic, s result.Stretch, w *result.Window) error {
	for trend := range metric.Trend(metric.NumTrends) {
		whole := map[string]*hist.Histogram{}
		for _, of := range []string{trend.String(), trend.In(metric.Closed)} {
			if h := t.Trends[of]; h != nil && h.Count() > 0 {
				whole[of] = h
			}
		}
		if len(whole) == 0 {
			continue
		}
		file := name + "." + trend.String() + hlog
		all := map[string]*hist.Histogram{}
		for line, err := range readLog(filepath.Join(folder, file)) {
			if err != nil {
				return err
			}
			of, group, err := t.Tagged(trend, line.Tag)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			all[of] = hist.Merged(all[of], line.Histogram)
			from, to := line.From.Sub(started), line.To.Sub(started)
			first, last := time.Duration(s.From*float64(time.Second)), time.Duration(s.To*float64(time.Second))
			switch {
			case to <= first+rounding || from >= last-rounding:
			case from < first-rounding || to > last+rounding:
				return fmt.Errorf("%s: an interval from %v to %v is partly in what is asked for", file, from, to)
			default:
				w.Trends[of] = hist.Merged(w.Trends[of], line.Histogram)
				if trend.Consumers() {
					g := &w.Groups[group]
					g.Trends[of] = hist.Merged(g.Trends[of], line.Histogram)
				}
			}
		}
		for of, h := range whole {
			if all[of] == nil || !all[of].SameDistribution(h) {
				return fmt.Errorf("%s does not have all of the run: it ended early, or is of another", file)
			}
		}
	}
	return nil
}
