package load

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

const (
	// mostIntervals is how many intervals the timeline of a topic has at most: a run of ten minutes keeps its seconds. From the fifth
	// topic on each has fewer than the one before.
	mostIntervals  = 640
	leastIntervals = 64
	allIntervals   = 4 * mostIntervals
)

// interval is what was measured on a topic between two instants. Two that follow one another can be joined.
type interval struct {
	from, to    int64 // ns since the Unix epoch
	counts      [metric.NumCounters]int64
	errors      map[driver.Kind]int64
	inFlight    int64            // the most that was seen
	outstanding uint64           // likewise
	backlog     map[string]int64 // likewise, by group
	cpu         float64          // the share of its CPUs that the process used, on average
	busiest     float64          // the same over the worst [saturatedWindow] under load that ended in the interval
	trends      map[trendKey]hist.Packed
}

// trendKey tells the trends of one topic apart.
type trendKey struct {
	loop  metric.Loop
	trend metric.Trend
}

// join gives the interval that a and the next one, b, are together.
func join(a, b *interval) *interval {
	j := *a
	j.to = b.to
	for i, n := range b.counts {
		j.counts[i] += n
	}
	j.errors = result.Combined(a.errors, b.errors, func(x, y int64) int64 { return x + y })
	j.inFlight = max(a.inFlight, b.inFlight)
	j.outstanding = max(a.outstanding, b.outstanding)
	j.backlog = result.Combined(a.backlog, b.backlog, func(x, y int64) int64 { return max(x, y) })
	if length := float64(b.to - a.from); length > 0 {
		j.cpu = (a.cpu*float64(a.to-a.from) + b.cpu*float64(b.to-b.from)) / length
	}
	j.busiest = max(a.busiest, b.busiest)
	j.trends = result.Combined(a.trends, b.trends, func(x, y hist.Packed) hist.Packed {
		both := &hist.Histogram{}
		x.AddTo(both)
		y.AddTo(both)
		return both.Pack()
	})
	return &j
}

// timeline is what was measured on a topic over time: however long the run, in a bounded number of intervals. When there are too many
// they become twice as long, in pairs from the first on, one pair for each that is added: never is there much to do at once.
type timeline struct {
	most      int         // how many intervals
	width     int         // how many collections make one
	intervals []*interval // those before longer have 2*width collections, the others width
	longer    int

	joined func(at int64) // hears of the instants between intervals that were joined

	open    *interval // the interval in the making
	trends  map[trendKey]*hist.Histogram
	pending int // the collections in it
	load    loadWindow
}

// newTimeline makes the timeline of the n-th topic of a run.
func newTimeline(n int) *timeline {
	return &timeline{joined: func(int64) {}, width: 1, most: max(leastIntervals, min(mostIntervals, allIntervals/n))}
}

// add adds a collection, which follows the one before.
func (t *timeline) add(next *interval, trends map[trendKey]*hist.Histogram) {
	next.busiest = t.load.add(next)
	if t.open == nil {
		t.open, t.trends = next, map[trendKey]*hist.Histogram{}
	} else {
		t.joined(t.open.to)
		t.open = join(t.open, next)
	}
	for key, h := range trends {
		t.trends[key] = hist.Merged(t.trends[key], h)
	}
	if t.pending++; t.pending < t.width {
		return
	}
	t.intervals = append(t.intervals, t.packed())
	t.open, t.trends, t.pending = nil, nil, 0
	if len(t.intervals) > t.most {
		t.shorten()
	}
}

// packed is the interval in the making, as it is now.
func (t *timeline) packed() *interval {
	i := *t.open
	i.trends = make(map[trendKey]hist.Packed, len(t.trends))
	for key, h := range t.trends {
		i.trends[key] = h.Pack()
	}
	return &i
}

// shorten joins the first two intervals that are not longer yet.
func (t *timeline) shorten() {
	t.joined(t.intervals[t.longer].to)
	t.intervals[t.longer] = join(t.intervals[t.longer], t.intervals[t.longer+1])
	t.intervals = slices.Delete(t.intervals, t.longer+1, t.longer+2)
	if t.longer++; t.longer == len(t.intervals) {
		t.width, t.longer = 2*t.width, 0
	}
}

// all gives the intervals, all of one length but for the last.
func (t *timeline) all() []*interval {
	if t == nil {
		return nil
	}
	rest := append([]*interval{}, t.intervals[t.longer:]...)
	if t.open != nil {
		rest = append(rest, t.packed())
	}
	if t.longer == 0 {
		return rest
	}
	all := append([]*interval{}, t.intervals[:t.longer]...)
	for ; len(rest) > 1; rest = rest[2:] {
		all = append(all, join(rest[0], rest[1]))
	}
	return append(all, rest...)
}

// loadWindow is the last stretches of time in which something was due or received, and the share of the CPUs that was used in each.
type loadWindow []struct{ cpu, seconds float64 }

// add gives the share that was used over the last saturatedWindow under load; 0 where there has not been so much.
func (w *loadWindow) add(i *interval) float64 {
	if i.counts[metric.Due]+i.counts[metric.Received] == 0 {
		return 0
	}
	*w = append(*w, struct{ cpu, seconds float64 }{i.cpu, seconds(i.to - i.from)})
	var used, length float64
	for n := len(*w) - 1; n >= 0; n-- {
		stretch := (*w)[n]
		used, length = used+stretch.cpu*stretch.seconds, length+stretch.seconds
		if length >= result.SaturatedWindow-0.5 {
			*w = (*w)[n:]
			return used / length
		}
	}
	return 0
}
