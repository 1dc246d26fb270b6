package engine

import (
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// window is the mean of a share over the last [result.SaturatedWindow] seconds under load.
type busyWindow struct {
	parts []weighted
	most  float64 // of all windows
	full  bool
}

type weighted struct{ value, seconds float64 }

// add adds a stretch of time and returns the mean of the last window; 0 while it is not full.
func (w *busyWindow) add(value, seconds float64) float64 {
	w.parts = append(w.parts, weighted{value, seconds})
	var sum, length float64
	for i := len(w.parts) - 1; i >= 0; i-- {
		length += w.parts[i].seconds
		sum += w.parts[i].value * w.parts[i].seconds
		if length >= result.SaturatedWindow-0.5 {
			w.parts = w.parts[i:]
			w.most, w.full = max(w.most, sum/length), true
			return sum / length
		}
	}
	return 0
}

// worst returns the greatest mean over a window, or the mean of a shorter run; nil if nothing is known.
func (w *busyWindow) worst() *float64 {
	if w.full {
		return &w.most
	}
	var sum, length float64
	for _, p := range w.parts {
		length += p.seconds
		sum += p.value * p.seconds
	}
	if length == 0 {
		return nil
	}
	mean := sum / length
	return &mean
}

// platform gathers what a monitor observed of the machine, as far as the run was at work.
type platform struct {
	witness *machine.Monitor
	shares  [6]busyWindow // in the order of [result.Platform]
}

// add adds what the monitor observed since the last call, and returns the hiccups.
func (p *platform) add(working bool) *hist.Histogram {
	if p.witness == nil {
		return nil
	}
	i := p.witness.Interval()
	length := seconds(i.To - i.From)
	if !working || length <= 0 {
		return nil
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
	return i.Hiccups
}

// result returns everything but the hiccups, which are in the recording; nil without a monitor.
func (p *platform) result() *result.Platform {
	if p.witness == nil {
		return nil
	}
	return &result.Platform{
		Hiccups: &hist.Histogram{}, Process: p.shares[0].worst(), Host: p.shares[1].worst(), Others: p.shares[2].worst(),
		Steal: p.shares[3].worst(), Pressure: p.shares[4].worst(), GroupPressure: p.shares[5].worst(),
	}
}

// Watch monitors the machine until [Collector.Unwatch].
func (c *Collector) Watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.platform.witness = machine.Start()
}

// Unwatch ends that. What was seen stays.
func (c *Collector) Unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.platform.witness != nil {
		c.platform.witness.Stop()
	}
}
