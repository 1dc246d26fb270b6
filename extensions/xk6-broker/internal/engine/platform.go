package engine

import (
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// busyWindow is the mean of a share over the last window under load.
type busyWindow struct {
	parts []weighted
	last  float64  // of the last window; 0 before the first
	most  *float64 // of all windows; nil before the first
}

type weighted struct{ value, seconds float64 }

// add adds a stretch of time.
func (w *busyWindow) add(value, seconds float64) {
	w.parts = append(w.parts, weighted{value, seconds})
	var sum, length float64
	for i, p := range slices.Backward(w.parts) {
		length += p.seconds
		sum += p.value * p.seconds
		if length < recording.BusyWindow-0.5 {
			continue
		}
		w.parts = w.parts[i:]
		mean := sum / length
		if w.last = mean; w.most == nil || mean > *w.most {
			w.most = &mean
		}
		return
	}
}

// platform gathers the shares of the machine that a monitor saw while the run was at work.
type platform struct {
	monitor *machine.Monitor
	shares  [6]busyWindow // in the order of [summary.Machine]
}

// observe adds the shares since the last call, and fills in the CPU and the hiccups of an interval.
// Without a monitor they are not known.
func (p *platform) observe(to *recording.Interval, working bool) {
	if p.monitor == nil {
		return
	}
	i := p.monitor.Interval()
	to.CPU = i.Process.Value
	length := time.Duration(i.To - i.From).Seconds()
	if !working || length <= 0 {
		return
	}
	host, others := i.Host, machine.Share{}
	if host.Known && i.Own.Known {
		host.Value = max(host.Value, i.Own.Value) // the system samples the one and counts the other
		others = machine.Share{Value: host.Value - i.Own.Value, Known: true}
	}
	for k, s := range []machine.Share{i.Process, host, others, i.Steal, i.Pressure, i.GroupPressure} {
		if s.Known {
			p.shares[k].add(s.Value, length)
		}
	}
	to.Busiest = p.shares[0].last
	to.Hiccups = map[string]hist.Packed{to.Phase: i.Hiccups.Pack()}
}

// summary returns the worst shares; nil without a monitor.
func (p *platform) summary() *summary.Machine {
	if p.monitor == nil {
		return nil
	}
	return &summary.Machine{
		Process: p.shares[0].most, Host: p.shares[1].most, Others: p.shares[2].most,
		Steal: p.shares[3].most, Pressure: p.shares[4].most, GroupPressure: p.shares[5].most,
	}
}

// Watch monitors the machine until [Collector.Unwatch].
func (c *Collector) Watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.platform.monitor = machine.Start()
}

// Unwatch stops the monitor. Its shares stay.
func (c *Collector) Unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.platform.monitor != nil {
		c.platform.monitor.Stop()
	}
}
