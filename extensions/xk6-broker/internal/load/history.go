package load

import (
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// queues adds to an interval what waits for the groups of its topic.
func (t *Topic) queues(i *interval) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark(driver.Now())
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
func history(all []*interval, started int64, crossings *crossings) []result.Point {
	points, ends := make([]result.Point, len(all)), make([]int64, len(all))
	for n, i := range all {
		ends[n] = i.to
	}
	underway, before := crossings.over(ends), int64(0)
	for n, i := range all {
		p := result.Point{
			At: seconds(i.to - started), Seconds: seconds(i.to - i.from), Counts: map[string]int64{}, Active: described(i.active, started), ErrorKinds: map[string]int64{},
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

// enoughFor are the numbers of messages that a p99, a p90 and a median need: 10 beyond each.
var enoughFor = []uint64{1000, 100, 20}

// overTime gives each trend's distribution over time, in intervals that are long enough to say something, see lengthFor. Trends of a topic
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
		for together := range slices.Chunk(all, lengthFor(counts)) {
			h := &hist.Histogram{}
			for _, i := range together {
				for _, key := range keys {
					i.trends[key].AddTo(h)
				}
			}
			from, to := together[0].from, together[len(together)-1].to
			summaries[name] = append(summaries[name], result.Summary{
				At: seconds(to - started), Seconds: seconds(to - from), Count: h.Count(),
				P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max(),
			})
		}
	}
	return summaries
}

// lengthFor says how many of the intervals with so many messages are to be taken together, so that nearly all that have any have a p99
// with 10 messages beyond it: the least power of two, though no more than a tenth of the run. Where that is too few for a p99, it is
// what a p90 needs, or a median.
func lengthFor(counts []uint64) int {
	for _, enough := range enoughFor {
		for length := 1; length == 1 || length <= len(counts)/10; length *= 2 {
			if nearlyAll(counts, length, enough) {
				return length
			}
		}
	}
	return 1
}

// nearlyAll tells whether nine tenths of the intervals that have messages have enough. The first and the last that have any do not count:
// the load went on in part of them only.
func nearlyAll(counts []uint64, length int, enough uint64) bool {
	var sums []uint64
	for together := range slices.Chunk(counts, length) {
		var sum uint64
		for _, n := range together {
			sum += n
		}
		if sum > 0 {
			sums = append(sums, sum)
		}
	}
	if len(sums) > 2 {
		sums = sums[1 : len(sums)-1]
	}
	have := 0
	for _, n := range sums {
		if n >= enough {
			have++
		}
	}
	return 10*have >= 9*len(sums)
}
