package load

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Delta is what one series measured since the last collection.
type Delta struct {
	Series *Series
	Measured
}

// Collector takes the measurements of a run interval by interval. What it hands out adds up to what the run counted.
type Collector struct {
	// LogsCut, if it is set, is called once if the interval logs have to end before the run does, with the reason. It must not call the
	// collector.
	LogsCut func(error)
	// Waiting, if it is set, tells how many arrivals that the engine does not drive wait to be sent under some labels, under which so many were due and
	// have been sent so far.
	Waiting func(l Labels, due int64) Queue

	run  *Run
	mu   sync.Mutex
	last int64
	cpu  time.Duration         // of the process, at last
	busy float64               // the share of its CPUs that the process used in the last interval
	seen map[*Series]*Measured // at last

	platform platform
	ends     ends
	befallen befallen // up to now
	phases   phases

	timelines map[topicKey]*timeline
	logs      logs
}

// NewCollector makes the collector of a run; there is one.
func (r *Run) NewCollector() *Collector {
	return &Collector{
		run: r, last: r.Started, cpu: clock.CPU(), seen: map[*Series]*Measured{}, timelines: map[topicKey]*timeline{},
		ends: ends{run: r, of: map[endKey]*ended{}}, befallen: befallen{},
		logs: logs{started: time.Unix(0, r.Started), of: map[topicKey]map[metric.Trend]*intervalLog{}},
	}
}

// Start says when the test has begun, before anything was measured: that may be long after its process has, which may have stood paused.
func (c *Collector) Start(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run.Started, c.last, c.cpu = at, at, clock.CPU()
	c.logs.started = time.Unix(0, at)
}

// Close lets go of what the logs have on disk; they cannot be written after it.
func (c *Collector) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logs.spool.close()
}

// Collect gives what every series measured since the last call.
func (c *Collector) Collect() []Delta {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.collect(false)
}

// collect is a cut, too, where a phase ends.
func (c *Collector) collect(cut bool) []Delta {
	now := driver.Now()
	c.run.edges.next(now, cut)
	deltas := make([]Delta, 0, len(c.seen))
	topics := map[topicKey][]Delta{}
	for _, s := range c.run.All() {
		d := c.delta(s)
		deltas = append(deltas, d)
		key := topicKey{s.Broker, s.Topic}
		topics[key] = append(topics[key], d)
	}
	hiccups := c.platform.note(slices.ContainsFunc(deltas, func(d Delta) bool { return d.Counters[metric.Due]+d.Counters[metric.Received] > 0 }))
	befell := c.ends.take(cut)
	c.befallen.add(befell)
	c.phases.watched(hiccups, befell)
	used := clock.CPU()
	c.busy = 0
	if now > c.last {
		c.busy = min(1, float64(used-c.cpu)/float64((now-c.last)*int64(runtime.GOMAXPROCS(0))))
	}
	for key, ds := range topics {
		c.note(key, now, c.busy, ds)
	}
	if err := c.logs.settle(now); err != nil && c.LogsCut != nil {
		c.LogsCut(err)
	}
	c.last, c.cpu = now, used
	return deltas
}

// CPU is the share of its CPUs, 0 to 1, that the process used in the interval that was collected last.
func (c *Collector) CPU() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy
}

func (c *Collector) delta(s *Series) Delta {
	now := s.Measured()
	d := Delta{s, now.since(c.seen[s])}
	c.seen[s] = now
	return d
}

// note adds an interval to a topic's timeline and to its logs.
func (c *Collector) note(key topicKey, now int64, share float64, deltas []Delta) {
	i := &interval{from: c.last, to: now, inFlight: c.run.InFlight(), cpu: share}
	if t := c.run.known(key); t != nil {
		t.queues(i)
	}
	trends := map[trendKey]*hist.Histogram{}
	for l := range metric.Loop(metric.NumLoops) {
		for t := range metric.Trend(metric.NumTrends) {
			var sum *hist.Histogram
			for _, d := range deltas {
				sum = hist.Merged(sum, d.Trends[l][t])
			}
			if sum != nil {
				trends[trendKey{l, t}] = sum
				c.log(key, trendKey{l, t}, now, sum, deltas)
			}
		}
	}
	for _, d := range deltas {
		for counter, n := range d.Counters {
			i.counts[counter] += n
		}
		for labels, n := range d.Errors {
			if i.errors == nil {
				i.errors = map[driver.Kind]int64{}
			}
			i.errors[labels.Kind] += n
		}
	}
	t := c.timelines[key]
	if t == nil {
		t = newTimeline(len(c.timelines) + 1)
		t.joined = c.run.edges.of(key).join
		c.timelines[key] = t
	}
	t.add(i, trends)
}

// log adds an interval to a log: where the topic has several groups, what each measured by itself.
func (c *Collector) log(key topicKey, m trendKey, now int64, sum *hist.Histogram, deltas []Delta) {
	groups := map[string]*hist.Histogram{}
	for _, d := range deltas {
		if h := d.Trends[m.loop][m.trend]; h != nil || d.Series.Group != "" {
			groups[d.Series.Group] = hist.Merged(groups[d.Series.Group], h)
		}
	}
	if len(groups) < 2 || !m.trend.Consumers() {
		groups = map[string]*hist.Histogram{"": sum}
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if h := groups[group]; h != nil && h.Count() > 0 {
			c.logs.write(key, m.trend, result.TagOf(m.loop, group), c.last, now, h)
		}
	}
}

// Logs gives what the interval logs hold so far, in the order of the topics and trends.
func (c *Collector) Logs() []result.IntervalLog {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []result.IntervalLog
	for _, t := range c.run.Topics() {
		all = append(all, c.logs.list(topicKey{t.Address.String(), t.Name})...)
	}
	return all
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }
