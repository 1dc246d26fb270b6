package load

import (
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// queues adds to an interval what waits for the groups of its topic.
func (t *Topic) queues(i *interval) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.order {
		i.outstanding += g.track.Outstanding()
		if n := g.queued.Load(); n > 0 {
			if i.backlog == nil {
				i.backlog = map[string]int64{}
			}
			i.backlog[g.account] = n - 1
		}
	}
	for name := range t.awaited {
		if t.groups[name] == nil { // no consumer has opened yet, and its messages wait for it
			i.outstanding += t.track.Expected()
		}
	}
}

// history gives the points of a topic's history.
func history(all []*interval, started int64, crossings *crossings, open *open) []result.Point {
	points, ends := make([]result.Point, len(all)), make([]int64, len(all))
	for n, i := range all {
		ends[n] = i.to
	}
	underway, before := crossings.over(ends), int64(0)
	for n := range underway {
		underway[n] = underway[n].Plus(open.until(ends[n]))
	}
	for n, i := range all {
		p := result.Point{
			At: seconds(i.to - started), Seconds: seconds(i.to - i.from), Counts: map[string]int64{}, ErrorKinds: map[string]int64{},
			InFlight: i.inFlight, Outstanding: i.outstanding, Underway: underway[n], Backlog: i.backlog, CPU: i.cpu, Busiest: i.busiest,
		}
		for c, n := range i.counts {
			if n != 0 {
				p.Counts[metric.Counter(c).String()] = n
			}
		}
		// Of an arrival that is sent just as a collection is made it may not be known twice in which interval it was.
		late := max(int64(underway[n].Arrivals), before-i.counts[metric.Due]) //gosec:disable G115 -- a count
		dueThen(p.Counts, late-before)
		before = late
		for kind, n := range i.errors {
			p.Errors += n
			p.ErrorKinds[string(kind)] = n
		}
		points[n] = p
	}
	return points
}

// dueThen makes of the arrivals that were sent between two instants those that were due then: so many more were late at the end than at the beginning.
func dueThen(counts map[string]int64, more int64) {
	if more != 0 {
		counts[metric.Due.String()] += more
	}
}

// overTime gives each trend's distribution over time, in intervals that are long enough to say something, see [result.LengthFor]. Trends of a topic
// without open loop have their plain names.
func overTime(all []*interval, started int64, open bool) map[string][]result.Summary {
	names := map[string][]trendKey{}
	for _, i := range all {
		for key := range i.trends {
			name := key.trend.In(key.loop)
			if !open {
				name = strings.TrimSuffix(name, metric.ClosedSuffix)
			}
			if !slices.Contains(names[name], key) {
				names[name] = append(names[name], key)
			}
		}
	}
	summaries := make(map[string][]result.Summary, len(names))
	for name, keys := range names {
		counts := make([]uint64, len(all))
		for n, i := range all {
			for _, key := range keys {
				counts[n] += i.trends[key].Count()
			}
		}
		for together := range slices.Chunk(all, result.LengthFor(counts)) {
			h := &hist.Histogram{}
			for _, i := range together {
				for _, key := range keys {
					i.trends[key].AddTo(h)
				}
			}
			from, to := together[0].from, together[len(together)-1].to
			summaries[name] = append(summaries[name], result.Summarise(h, seconds(to-started), seconds(to-from)))
		}
	}
	return summaries
}
