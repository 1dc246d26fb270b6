package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// phases are the parts of a run's time. A latency belongs to the phase in which its message is due,
// a count to the phase in which it happens.
type phases struct{ now atomic.Pointer[cuts] }

// cuts are the phases so far, and when each began. They are never changed.
type cuts struct {
	names   []string // the first is "", before any has begun
	all     []cut
	present cut // the last of all
}

// cut is when a phase began, once or again.
type cut struct {
	at    int64
	phase int
}

// Limits of a run.
const (
	mostPhases = 50
	mostCuts   = 1000
)

var errPhases = fmt.Errorf("phase: there are %d phases already, or %d changes", mostPhases-1, mostCuts)

func newPhases() *phases {
	p := &phases{}
	first := cut{math.MinInt64, 0}
	p.now.Store(&cuts{[]string{""}, []cut{first}, first})
	return p
}

func (p *phases) present() int { return p.now.Load().present.phase }

// at returns the phase of an instant, and whether that instant is after the last cut.
func (p *phases) at(instant int64) (phase int, present bool) {
	c := p.now.Load()
	if instant >= c.present.at {
		return c.present.phase, true
	}
	for _, before := range slices.Backward(c.all) {
		if instant >= before.at {
			return before.phase, false
		}
	}
	return 0, false // the first cut is before everything
}

// begin begins a phase, or goes on with one of that name.
func (p *phases) begin(name string, at int64) error {
	c := *p.now.Load()
	phase := slices.Index(c.names, name)
	if len(c.all) > mostCuts || phase < 0 && len(c.names) == mostPhases {
		return errPhases
	}
	if phase < 0 {
		phase = len(c.names)
		c.names = append(slices.Clone(c.names), name)
	}
	c.present = cut{at, phase}
	c.all = append(slices.Clone(c.all), c.present)
	p.now.Store(&c)
	return nil
}

// Begin begins a phase, or goes on with one of that name, and returns what every series measured since
// the last collection. It does nothing if the phase is the present one.
func (c *Collector) Begin(name string) ([]Delta, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch now := c.run.phases.now.Load(); {
	case name == "":
		return nil, errors.New("phase: it has no name")
	case name == now.names[now.present.phase]:
		return nil, nil
	}
	deltas := c.take()
	if err := c.run.phases.begin(name, c.last); err != nil {
		return deltas, err
	}
	return deltas, nil
}

// During returns what each series has measured so far in a phase, or in the run if the name is "". It
// is false if there is no such phase.
func (c *Collector) During(name string) (map[*Series]*Measured, bool) {
	phase := everyPhase
	if name != "" {
		if phase = slices.Index(c.run.phases.now.Load().names, name); phase < 0 {
			return nil, false
		}
	}
	all := map[*Series]*Measured{}
	for _, s := range c.run.All() {
		all[s] = s.measured(phase)
	}
	return all, true
}
