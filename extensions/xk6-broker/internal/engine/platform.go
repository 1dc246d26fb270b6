package engine

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// platform gathers it, interval by interval.
type platform struct {
	witness *machine.Witness
	shares  [6]worst // in the order of Platform
}

// worst is the greatest mean of a share over a window.
type worst struct {
	window []weighted
	most   float64
	known  bool
}

type weighted struct{ value, seconds float64 }

func (w *worst) add(s machine.Share, seconds float64) {
	if !s.Known || seconds <= 0 {
		return
	}
	w.window = append(w.window, weighted{s.Value, seconds})
	length, sum := 0.0, 0.0
	for i := len(w.window) - 1; i >= 0; i-- {
		length += w.window[i].seconds
		sum += w.window[i].value * w.window[i].seconds
		if length >= result.SaturatedWindow-0.5 {
			w.window = w.window[i:]
			w.most, w.known = max(w.most, sum/length), true
			return
		}
	}
}

// value is the worst; of a run that is shorter than a window, the mean.
func (w *worst) value() *float64 {
	if w.known {
		return &w.most
	}
	length, sum := 0.0, 0.0
	for _, s := range w.window {
		length += s.seconds
		sum += s.value * s.seconds
	}
	if length == 0 {
		return nil
	}
	mean := sum / length
	return &mean
}

// note takes what the witness saw since the last time, which counts where the run was at work, and gives the hiccups that count.
func (p *platform) note(working bool) *hist.Histogram {
	if p.witness == nil {
		return nil
	}
	i := p.witness.Interval()
	if !working {
		return nil
	}
	seconds := time.Duration(i.To - i.From).Seconds()
	host := withIn(i.Host, i.Own)
	for k, s := range []machine.Share{i.Process, host, others(host, i.Own), i.Steal, i.Pressure, i.GroupPressure} {
		p.shares[k].add(s, seconds)
	}
	return i.Hiccups
}

// withIn is what all processes used of the CPUs, of which one used a part: the system counts the whole by sampling, and misses short bursts of
// the part, which it counts exactly.
func withIn(all, part machine.Share) machine.Share {
	if all.Known && part.Known {
		all.Value = max(all.Value, part.Value)
	}
	return all
}

// others is what all but this process used of the CPUs.
func others(all, own machine.Share) machine.Share {
	if !all.Known || !own.Known {
		return machine.Share{}
	}
	return machine.Share{Value: max(0, all.Value-own.Value), Known: true}
}

// result returns all but the hiccups, which are in the recording. It is nil if there is no witness.
func (p *platform) result() *result.Platform {
	if p.witness == nil {
		return nil
	}
	return &result.Platform{
		Hiccups: &hist.Histogram{}, Process: p.shares[0].value(), Host: p.shares[1].value(), Others: p.shares[2].value(), Steal: p.shares[3].value(),
		Pressure: p.shares[4].value(), GroupPressure: p.shares[5].value(),
	}
}

// Watch lets a witness watch the platform until [Collector.Unwatch].
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
