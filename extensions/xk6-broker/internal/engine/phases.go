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

// cuts are the phases so far, and the instants at which they began. They are never changed.
type cuts struct {
	names []string // the first is "", before any has begun
	all   []cut    // the last is the present one
}

// cut is the beginning of a phase, for the first time or again.
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
	p.now.Store(&cuts{names: []string{""}, all: []cut{{at: math.MinInt64}}})
	return p
}

func (c *cuts) present() int { return c.all[len(c.all)-1].phase }

func (p *phases) present() int { return p.now.Load().present() }

// at returns the phase of an instant, and whether that instant is after the last cut.
func (p *phases) at(instant int64) (phase int, present bool) {
	all := p.now.Load().all
	last := len(all) - 1
	for i := last; i > 0; i-- {
		if instant >= all[i].at {
			return all[i].phase, i == last
		}
	}
	return 0, last == 0
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
	c.all = append(slices.Clone(c.all), cut{at, phase})
	p.now.Store(&c)
	return nil
}

// Begin begins a phase, or goes on with one of that name, and returns the measurements of every
// series since the last collection. It does nothing if the phase is the present one.
func (c *Collector) Begin(name string) ([]Delta, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.run.phases.now.Load()
	if name == "" {
		return nil, errors.New("phase: it has no name")
	}
	if name == now.names[now.present()] {
		return nil, nil
	}
	deltas := c.take()
	return deltas, c.run.phases.begin(name, c.last)
}

// During returns the measurements of each series so far in a phase, or in the run if the name is
// "". It is false if there is no such phase.
func (c *Collector) During(name string) (map[*Series]*Measured, bool) {
	phase := everyPhase
	if name != "" {
		phase = slices.Index(c.run.phases.now.Load().names, name)
		if phase < 0 {
			return nil, false
		}
	}
	all := map[*Series]*Measured{}
	for _, s := range c.run.All() {
		all[s] = s.measured(phase)
	}
	return all, true
}
