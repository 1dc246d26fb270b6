package executors

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"go.k6.io/k6/v2/cmd"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// runProbe runs k6 with the executors and k6/x/probe, by which scripts record the starts of their iterations.
func runProbe() {
	modules.Register("k6/x/probe", &probe{})
	cmd.Execute()
}

type probe struct {
	mu    sync.Mutex
	marks []mark
}

func (p *probe) NewModuleInstance(vu modules.VU) modules.Instance { return &instance{p, vu} }

type instance struct {
	*probe
	vu modules.VU
}

func (i *instance) Exports() modules.Exports {
	return modules.Exports{Named: map[string]any{"mark": i.mark, "write": i.write}}
}

// mark notes the present iteration. With k6's constant-arrival-rate it is due a period after the one before it, as long as none is
// dropped.
func (i *instance) mark() {
	m := mark{At: driver.Now(), VU: i.vu.State().VUID}
	if a, ok := FromContext(i.vu.Context()); ok {
		m.Scenario, m.Index, m.Due, m.Started = a.Scenario, a.Index, a.Due, a.Started
		m.Iteration = i.vu.State().GetScenarioGlobalVUIter()
	} else if s := lib.GetScenarioState(i.vu.Context()); s != nil {
		m.Scenario, m.Iteration = s.Name, i.vu.State().GetScenarioGlobalVUIter()
		if c, ok := i.vu.State().Options.Scenarios[s.Name].(*executor.ConstantArrivalRateConfig); ok {
			m.Index = m.Iteration
			start := m.At - int64(time.Since(s.StartTime))
			m.Due = start + int64(m.Index)*int64(c.TimeUnit.TimeDuration())/c.Rate.Int64 //gosec:disable G115 -- a number of a test, and small
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.marks = append(i.marks, m)
}

// write saves what was noted, and the totals.
func (i *instance) write() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	text, err := json.Marshal(map[string]any{"Marks": i.marks, "Totals": Totals()})
	if err != nil {
		return err
	}
	return os.WriteFile(os.Getenv("PROBE"), text, 0o600) //gosec:disable G703 -- a test's file
}
