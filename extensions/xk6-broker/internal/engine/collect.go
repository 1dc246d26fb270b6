package engine

import (
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Delta holds the measurements of one series in one phase since the last collection.
type Delta struct {
	Series *Series
	Phase  string
	Measured
}

// Collector takes the measurements of a run interval by interval, and keeps them in a recording.
type Collector struct {
	run       *Run
	mu        sync.Mutex
	last      int64
	busy      float64                   // the share of its CPUs that the process used in the last interval
	seen      map[seriesPhase]*Measured // at last
	phases    [2]int                    // that were present at the last two collections
	platform  platform
	recording recording.Recording
	taken     []Delta // for the result, and not yet returned
	unsaved   []*recording.Interval
	file      *recording.File // nil if the recording is kept in memory only
}

type seriesPhase struct {
	*Series
	phase int
}

// NewCollector makes the collector of a run; there is one.
func (r *Run) NewCollector() *Collector {
	return &Collector{run: r, last: r.Started, seen: map[seriesPhase]*Measured{}}
}

// Start sets when the test began, which may be long after its process.
func (c *Collector) Start(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run.Started, c.last = at, at
}

// RecordTo writes every interval from now on to a file as well, in case the process is killed.
func (c *Collector) RecordTo(path string) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.file, err = recording.Create(path)
	return err
}

// Save writes the collected intervals to the recording's file, if there is one.
func (c *Collector) Save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	added := c.unsaved
	c.unsaved = nil
	return c.file.Append(&c.recording, added...)
}

// CPU returns the share of its CPUs, 0 to 1, that the process used in the last interval.
func (c *Collector) CPU() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy
}

// Collect returns the measurements of every series since the last call.
func (c *Collector) Collect() []Delta {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take()
}

func (c *Collector) take() []Delta {
	deltas := append(c.taken, c.collect(false)...)
	c.taken = nil
	return deltas
}

// collect adds an interval to the recording. It looks at the last phases and those in which
// something was recorded since; the last collection looks at all.
func (c *Collector) collect(last bool) (deltas []Delta) {
	cuts := c.run.phases.now.Load()
	present := cuts.present()
	now := driver.Now()
	all := records{}
	for _, s := range c.run.All() {
		for phase, name := range cuts.names {
			part := s.parts[phase].Load()
			recent := phase == present || slices.Contains(c.phases[:], phase)
			if part == nil || !part.late.Swap(false) && !recent && !last {
				continue
			}
			measured, key := s.measured(phase), seriesPhase{s, phase}
			d := Delta{s, name, measured.since(c.seen[key])}
			c.seen[key] = measured
			if !d.empty() {
				deltas = append(deltas, d)
				all.add(&d)
			}
		}
	}
	c.phases = [2]int{c.phases[1], present}
	if len(all) > 0 || !last && now > c.last {
		c.add(now, cuts.names[present], all)
	}
	return deltas
}

// add adds an interval to the recording.
func (c *Collector) add(now int64, phase string, all records) {
	working := all.working()
	for _, g := range c.run.groups() {
		all.addQueue(g, phase)
	}
	i := &recording.Interval{From: c.last, To: now, Phase: phase, InFlight: c.run.InFlight()}
	c.platform.observe(i, working)
	for _, r := range all {
		i.Records = append(i.Records, *r)
	}
	c.recording.Add(i)
	if c.file != nil {
		c.unsaved = append(c.unsaved, i)
	}
	c.last, c.busy = now, i.CPU
}

// records are the records of an interval by their keys.
type records map[recording.Key]*recording.Record

// find finds or makes the record of a key.
func (all records) find(key recording.Key) *recording.Record {
	r := all[key]
	if r == nil {
		r = &recording.Record{Key: key, Errors: recording.Errors{}}
		all[key] = r
	}
	return r
}

// add adds the measurements of a series. Series that differ in their tags share a record.
func (all records) add(d *Delta) {
	s := d.Series
	r := all.find(recording.Key{Broker: s.Broker, Driver: s.Driver, Topic: s.Topic, Group: s.Group, Phase: d.Phase})
	for i, n := range d.Counters {
		r.Counts[i] += n
	}
	for i := range d.Spans {
		r.Spans[i] = r.Spans[i].And(d.Spans[i])
	}
	for key, n := range d.Errors {
		r.Errors[key] += n
	}
	for l := range d.Trends {
		for t, h := range d.Trends[l] {
			if h != nil {
				r.Latencies[l][t] = r.Latencies[l][t].With(h.Pack())
			}
		}
	}
}

// working reports whether anything was due or received.
func (all records) working() bool {
	for _, r := range all {
		if r.Counts[recording.Due]+r.Counts[recording.Received] > 0 {
			return true
		}
	}
	return false
}

// addQueue adds the number of messages that wait for a group.
func (all records) addQueue(g *group, phase string) {
	t := g.topic
	key := recording.Key{Broker: t.broker, Driver: t.Address.Driver.Name, Topic: t.Name, Group: g.account, Phase: phase}
	if n := g.track.Outstanding(); n > 0 {
		all.find(key).Outstanding = n
	}
	if b := g.backlog.Load(); b != nil && b.at > 0 {
		all.find(key).Backlog = &b.Messages
	}
}
