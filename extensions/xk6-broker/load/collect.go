package load

import (
	"bytes"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/cpu"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// Delta is what one series measured since the last collection.
type Delta struct {
	*Series
	Counters [NumCounters]int64
	Trends   [NumLoops][NumTrends]*hist.Histogram // nil where nothing was measured
	Errors   map[ErrorLabels]int64
}

// Collector takes the measurements of a run interval by interval. What it hands out adds up to what the run counted.
type Collector struct {
	run  *Run
	mu   sync.Mutex
	last int64
	cpu  time.Duration // of the process, at last
	busy float64       // the share of its CPUs that the process used in the last interval
	seen map[*Series]*seen

	platform platform

	history map[topicKey][]Point
	logs    map[topicKey]map[Trend]*intervalLog // each with the intervals of both loops, told apart by the log's tag
}

type seen struct {
	counters [NumCounters]int64
	trends   [NumLoops][NumTrends]*hist.Histogram
	errors   map[ErrorLabels]int64
}

// intervalLog is a histogram log in the making: each interval is encoded at once, as a few KiB of text.
type intervalLog struct {
	text bytes.Buffer
	log  *hist.Log
}

// NewCollector makes the collector of a run; there is one.
func (r *Run) NewCollector() *Collector {
	return &Collector{
		run: r, last: r.Started, cpu: cpu.Time(), seen: map[*Series]*seen{},
		history: map[topicKey][]Point{}, logs: map[topicKey]map[Trend]*intervalLog{},
	}
}

// Collect gives what every series measured since the last call.
func (c *Collector) Collect() []Delta {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := driver.Now()
	deltas := make([]Delta, 0, len(c.seen))
	topics := map[topicKey][]Delta{}
	for _, s := range c.run.All() {
		d := c.delta(s)
		deltas = append(deltas, d)
		key := topicKey{s.Broker, s.Topic}
		topics[key] = append(topics[key], d)
	}
	c.platform.note(slices.ContainsFunc(deltas, func(d Delta) bool { return d.Counters[Due]+d.Counters[Received] > 0 }))
	used := cpu.Time()
	c.busy = 0
	if now > c.last {
		c.busy = min(1, float64(used-c.cpu)/float64((now-c.last)*int64(runtime.GOMAXPROCS(0))))
	}
	for key, ds := range topics {
		c.note(key, now, c.busy, ds)
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
	before, ok := c.seen[s]
	if !ok {
		before = &seen{errors: map[ErrorLabels]int64{}}
		c.seen[s] = before
	}
	d := Delta{Series: s, Errors: map[ErrorLabels]int64{}}
	for i := range d.Counters {
		n := s.counters[i].Load()
		d.Counters[i], before.counters[i] = n-before.counters[i], n
	}
	for l := range s.trends {
		for i, r := range s.trends[l] {
			all := r.Snapshot()
			if before.trends[l][i] == nil {
				before.trends[l][i] = &hist.Histogram{}
			}
			if all.Count() > before.trends[l][i].Count() {
				d.Trends[l][i] = all.Sub(before.trends[l][i])
				before.trends[l][i] = all
			}
		}
	}
	for labels, n := range s.Errors() {
		if more := n - before.errors[labels]; more > 0 {
			d.Errors[labels], before.errors[labels] = more, n
		}
	}
	return d
}

// note adds a point to a topic's history and a line to its logs.
func (c *Collector) note(key topicKey, now int64, share float64, deltas []Delta) {
	p := Point{
		At: seconds(now - c.run.Started), Seconds: seconds(now - c.last),
		Counts: map[string]int64{}, InFlight: c.run.InFlight(), CPU: share, Latencies: map[string]Summary{},
	}
	if t := c.run.known(key); t != nil {
		t.queues(&p)
	}
	for l := range Loop(NumLoops) {
		for t := range Trend(NumTrends) {
			var sum *hist.Histogram
			for _, d := range deltas {
				sum = merge(sum, d.Trends[l][t])
			}
			if sum != nil {
				p.Latencies[nameOf(l, t)] = summarise(sum)
				c.log(key, l, t, now, sum)
			}
		}
	}
	for _, d := range deltas {
		for counter, n := range d.Counters {
			if n != 0 {
				p.Counts[Counter(counter).String()] += n
			}
		}
		for labels, n := range d.Errors {
			if p.ErrorKinds == nil {
				p.ErrorKinds = map[driver.Kind]int64{}
			}
			p.Errors += n
			p.ErrorKinds[labels.Kind] += n
		}
	}
	c.history[key] = append(c.history[key], p)
}

func (c *Collector) log(key topicKey, loop Loop, t Trend, now int64, interval *hist.Histogram) {
	logs := c.logs[key]
	if logs == nil {
		logs = map[Trend]*intervalLog{}
		c.logs[key] = logs
	}
	l := logs[t]
	if l == nil {
		l = &intervalLog{}
		l.log, _ = hist.NewLog(&l.text, time.Unix(0, c.run.Started)) // a buffer takes all that is written
		logs[t] = l
	}
	tag := ""
	if loop == Closed {
		tag = Closed.String()
	}
	_ = l.log.Write(tag, time.Unix(0, c.last), time.Unix(0, now), interval)
}

// merge adds b to a, either of which may be nil. a is changed, b is not.
func merge(a, b *hist.Histogram) *hist.Histogram {
	if b == nil {
		return a
	}
	if a == nil {
		a = &hist.Histogram{}
	}
	a.Merge(b)
	return a
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }
