package engine

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Delta is what one series measured in one phase since the last collection.
type Delta struct {
	Series *Series
	Phase  string
	Measured
}

// Collector takes the measurements of a run interval by interval, and keeps them in a recording.
type Collector struct {
	// Waiting, if it is set, returns how many arrivals that the engine does not drive are due under some labels and have not been sent.
	// So many were due and have been sent.
	Waiting func(l Labels, due int64) uint64

	run       *Run
	mu        sync.Mutex
	last      int64
	cpu       time.Duration // of the process, at last
	busy      float64       // the share of its CPUs that the process used in the last interval
	load      loadWindow
	seen      map[seriesPhase]*Measured // at last
	phases    [2]int                    // that were present at the last two collections
	late      map[topicKey]int64        // arrivals that were counted as due, and not sent, at last
	platform  platform
	recording recording.Recording
	taken     []Delta // by results, and not yet returned
	unsaved   []*recording.Interval
	file      *recording.File // nil if the recording is kept in memory only
}

type seriesPhase struct {
	*Series
	phase int
}

// NewCollector makes the collector of a run; there is one.
func (r *Run) NewCollector() *Collector {
	return &Collector{run: r, last: r.Started, cpu: machine.CPU(), seen: map[seriesPhase]*Measured{}, late: map[topicKey]int64{}}
}

// Start says when the test has begun, before anything was measured: that may be long after its process has, which may have stood paused.
func (c *Collector) Start(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run.Started, c.last, c.cpu = at, at, machine.CPU()
}

// RecordTo has every interval from now on written to a file as well, for the case that the process is killed.
func (c *Collector) RecordTo(path string) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.file, err = recording.Create(path)
	return err
}

// Collect returns what every series measured since the last call.
func (c *Collector) Collect() []Delta {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take()
}

// take returns what was measured since it was last called.
func (c *Collector) take() []Delta {
	deltas := append(c.taken, c.collect(false)...)
	c.taken = nil
	return deltas
}

// collect adds an interval to the recording. A phase that is over is looked at as long as anything is recorded in it; the last
// collection looks at all.
func (c *Collector) collect(last bool) []Delta {
	now, cuts := driver.Now(), c.run.phases.now.Load()
	present := cuts.present.phase
	var deltas []Delta
	records := map[recording.Key]*recording.Record{}
	for _, s := range c.run.All() {
		for phase, name := range cuts.names {
			late := s.wasLate(phase)
			if !last && !late && phase != present && !slices.Contains(c.phases[:], phase) {
				continue
			}
			d := c.delta(seriesPhase{s, phase})
			if d.empty() {
				continue
			}
			deltas = append(deltas, Delta{s, name, d})
			add(records, recording.Key{Broker: s.Broker, Driver: s.Driver, Topic: s.Topic, Group: s.Group, Phase: name}, &d)
		}
	}
	c.phases = [2]int{c.phases[1], present}
	working := c.dues(records, cuts.names[present])
	if len(records) == 0 && (last || now == c.last) {
		return deltas // there is nothing to record
	}
	c.queues(records, cuts.names[present])
	hiccups := c.platform.note(working)
	used := machine.CPU()
	c.busy = 0
	if now > c.last {
		c.busy = min(1, float64(used-c.cpu)/float64((now-c.last)*int64(runtime.GOMAXPROCS(0))))
	}
	i := &recording.Interval{
		From: c.last, To: now, Phase: cuts.names[present], InFlight: c.run.InFlight(), CPU: c.busy,
		Busiest: c.load.add(working, c.busy, seconds(now-c.last)),
	}
	if hiccups != nil {
		i.Hiccups = map[string]hist.Packed{i.Phase: hiccups.Pack()}
	}
	for _, r := range records {
		i.Records = append(i.Records, *r)
	}
	c.recording.Add(i)
	if c.file != nil {
		c.unsaved = append(c.unsaved, i)
	}
	c.last, c.cpu = now, used
	return deltas
}

// Save writes what was collected to the recording's file, if there is one.
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

// record finds or makes the record of a key.
func record(records map[recording.Key]*recording.Record, key recording.Key) *recording.Record {
	r := records[key]
	if r == nil {
		r = &recording.Record{Key: key}
		records[key] = r
	}
	return r
}

// add adds what a series measured to the record of its key, which several series have that differ in their tags.
func add(records map[recording.Key]*recording.Record, key recording.Key, d *Measured) {
	r := record(records, key)
	for i, n := range d.Counters {
		r.Counts[i] += n
	}
	for i := range d.Spans {
		r.Spans[i] = r.Spans[i].And(d.Spans[i])
	}
	for labels, n := range d.Errors {
		if r.Errors == nil {
			r.Errors = recording.Errors{}
		}
		r.Errors[recording.ErrorKey{Op: labels.Op, Kind: string(labels.Kind)}] += n
	}
	for l := range d.Trends {
		for t, h := range d.Trends[l] {
			if h != nil {
				r.Latencies[l][t] = r.Latencies[l][t].With(h.Pack())
			}
		}
	}
}

// dues counts the arrivals that are due and not yet sent as due, and reports whether anything was due or received. The meter counts an
// arrival as due when it is sent.
func (c *Collector) dues(records map[recording.Key]*recording.Record, phase string) (working bool) {
	due := map[topicKey]int64{}
	for key, r := range records {
		due[topicKey{key.Broker, key.Topic}] += r.Counts[recording.Due]
		working = working || r.Counts[recording.Due]+r.Counts[recording.Received] > 0
	}
	waiting := c.waiting()
	for _, t := range c.run.Topics() {
		key := topicKey{t.Address.String(), t.Name}
		// What was counted as due stays so, whatever becomes of it.
		late := max(int64(waiting[key]), c.late[key]-due[key]) //gosec:disable G115 -- a count
		if late != c.late[key] {
			record(records, recording.Key{Broker: key.address, Driver: t.Address.Driver.Name, Topic: t.Name, Phase: phase}).Counts[recording.Due] += late - c.late[key]
			c.late[key] = late
		}
	}
	return working
}

// waiting returns how many arrivals of each topic are due and not yet sent.
func (c *Collector) waiting() map[topicKey]uint64 {
	all := map[topicKey]uint64{}
	now := driver.Now()
	for _, t := range c.run.Topics() {
		if n := t.loops.waiting(now); n > 0 {
			all[topicKey{t.Address.String(), t.Name}] += n
		}
	}
	for _, p := range c.run.opened() {
		if n := p.queued.Load(); n > 0 {
			all[topicKey{p.topic.Address.String(), p.topic.Name}] += uint64(n)
		}
	}
	for _, s := range c.run.All() {
		if c.Waiting == nil {
			break
		}
		if n := c.Waiting(s.Labels, s.Count(recording.Due)); n > 0 {
			all[topicKey{s.Broker, s.Topic}] += n
		}
	}
	return all
}

// queues adds what waits for the groups of each topic.
func (c *Collector) queues(records map[recording.Key]*recording.Record, phase string) {
	for _, t := range c.run.Topics() {
		key := recording.Key{Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, Phase: phase}
		for group, n := range t.outstanding() {
			key.Group = group
			record(records, key).Outstanding = n
		}
		for group, n := range t.backlogs() {
			key.Group = group
			record(records, key).Backlog = &n
		}
	}
}

// outstanding returns how many messages each group expects and has not received.
func (t *Topic) outstanding() map[string]uint64 {
	all := map[string]uint64{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.order {
		if n := g.track.Outstanding(); n > 0 {
			all[g.account] += n
		}
	}
	for name := range t.awaited { // no consumer has opened yet, and its messages wait for it
		if n := t.track.Expected(); t.groups[name] == nil && n > 0 {
			all[name] += n
		}
	}
	return all
}

// backlogs returns what the broker reported last for each group, if it did.
func (t *Topic) backlogs() map[string]int64 {
	all := map[string]int64{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.order {
		if n := g.queued.Load(); n > 0 {
			all[g.account] = n - 1
		}
	}
	return all
}

// CPU is the share of its CPUs, 0 to 1, that the process used in the interval that was collected last.
func (c *Collector) CPU() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy
}

func (c *Collector) delta(s seriesPhase) Measured {
	now := s.measured(s.phase)
	d := now.since(c.seen[s])
	c.seen[s] = now
	return d
}

// loadWindow is the last stretches of time in which something was due or received, and the share of the CPUs that was used in each.
type loadWindow []struct{ cpu, seconds float64 }

// add returns the share that was used over the last saturatedWindow under load; 0 where there has not been so much.
func (w *loadWindow) add(working bool, cpu, took float64) float64 {
	if !working {
		return 0
	}
	*w = append(*w, struct{ cpu, seconds float64 }{cpu, took})
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

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }
