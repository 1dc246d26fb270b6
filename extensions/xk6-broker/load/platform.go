package load

import (
	"cmp"
	"fmt"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/witness"
)

// Platform is what a witness saw of the machine, and of who else was there, while messages were sent or received. The shares are those
// of the worst five seconds, 0 to 1, and absent where the platform does not tell.
type Platform struct {
	Hiccups       *hist.Histogram `json:"hiccups"`                 // how late a thread was that wakes every millisecond, in ns
	Process       *float64        `json:"process,omitempty"`       // of its CPUs, used by this process
	Host          *float64        `json:"host,omitempty"`          // of the same CPUs, used by all processes
	Steal         *float64        `json:"steal,omitempty"`         // of the same CPUs, given to other machines by the hypervisor
	Pressure      *float64        `json:"pressure,omitempty"`      // of the time, some task of the machine waited for a CPU
	GroupPressure *float64        `json:"groupPressure,omitempty"` // the same of the process's cgroup: its own limit shows here
}

// platform gathers it, interval by interval.
type platform struct {
	witness *witness.Witness
	hiccups hist.Histogram
	shares  [5]worst // in the order of Platform
}

// worst is the greatest mean of a share over a window.
type worst struct {
	window []weighted
	most   float64
	known  bool
}

type weighted struct{ value, seconds float64 }

func (w *worst) add(s witness.Share, seconds float64) {
	if !s.Known || seconds <= 0 {
		return
	}
	w.window = append(w.window, weighted{s.Value, seconds})
	length, sum := 0.0, 0.0
	for i := len(w.window) - 1; i >= 0; i-- {
		length += w.window[i].seconds
		sum += w.window[i].value * w.window[i].seconds
		if length >= saturatedWindow-0.5 {
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

// note takes what the witness saw since the last time, which counts where the run was at work.
func (p *platform) note(working bool) {
	if p.witness == nil {
		return
	}
	i := p.witness.Interval()
	if !working {
		return
	}
	p.hiccups.Merge(i.Hiccups)
	seconds := time.Duration(i.To - i.From).Seconds()
	for k, s := range []witness.Share{i.Process, withIn(i.Host, i.Process), i.Steal, i.Pressure, i.GroupPressure} {
		p.shares[k].add(s, seconds)
	}
}

// withIn is what all processes used of the CPUs, of which one used a part: the system counts the whole by sampling, and misses short bursts of
// the part, which it counts exactly.
func withIn(all, part witness.Share) witness.Share {
	if all.Known && part.Known {
		all.Value = max(all.Value, part.Value)
	}
	return all
}

// result is nil where nobody watched.
func (p *platform) result() *Platform {
	if p.witness == nil {
		return nil
	}
	hiccups := &hist.Histogram{}
	hiccups.Merge(&p.hiccups)
	return &Platform{
		Hiccups: hiccups, Process: p.shares[0].value(), Host: p.shares[1].value(), Steal: p.shares[2].value(),
		Pressure: p.shares[3].value(), GroupPressure: p.shares[4].value(),
	}
}

// seen are the hiccups; nil where nobody watched.
func (p *Platform) seen() *hist.Histogram {
	if p == nil {
		return nil
	}
	return p.Hiccups
}

// join adds what was seen of another machine: its hiccups, and what is worse there.
func (p *Platform) join(o *Platform) *Platform {
	if p == nil || o == nil {
		return cmp.Or(p, o)
	}
	hiccups := merge(merge(nil, p.Hiccups), o.Hiccups)
	return &Platform{
		Hiccups: hiccups, Process: worse(p.Process, o.Process), Host: worse(p.Host, o.Host), Steal: worse(p.Steal, o.Steal),
		Pressure: worse(p.Pressure, o.Pressure), GroupPressure: worse(p.GroupPressure, o.GroupPressure),
	}
}

func worse(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// Watch lets a witness watch the platform until [Collector.Unwatch].
func (c *Collector) Watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.platform.witness = witness.Start()
}

// Unwatch ends that. What was seen stays.
func (c *Collector) Unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.platform.witness != nil {
		c.platform.witness.Stop()
	}
}

const (
	// crowded is the share of the CPUs that other processes may use before they are named as the cause of lateness, stolen that of the
	// hypervisor, and of other processes beside it; pressed is that of the time that tasks of the cgroup wait.
	crowded = 0.25
	stolen  = 0.05
	pressed = 0.25
	// busy is the share of its CPUs beyond which more of them would help the generator.
	busy = 0.7
)

// advice says what would make the generator less late.
func (p *Platform) advice() string {
	if p == nil {
		return "lower the rate, or use a machine that is less busy"
	}
	has := func(v *float64, most float64) bool { return v != nil && *v > most }
	others, hypervisor := 0.0, 0.0
	if p.Host != nil && p.Process != nil {
		others = *p.Host - *p.Process
	}
	if p.Steal != nil {
		hypervisor = *p.Steal
	}
	neighbours := func() string {
		return fmt.Sprintf("other processes used %s of this machine's CPUs, k6 %s: run the generator apart from them", percent(others), percent(*p.Process))
	}
	machines := func() string {
		return fmt.Sprintf("the hypervisor gave %s of the CPUs to other machines: use one that shares none", percent(hypervisor))
	}
	switch {
	case hypervisor > stolen && others > hypervisor:
		return neighbours() + "; " + machines()
	case hypervisor > stolen && others > stolen:
		return machines() + "; " + neighbours()
	case hypervisor > stolen:
		return machines()
	case others > crowded:
		return neighbours()
	case has(p.Process, busy):
		return fmt.Sprintf("k6 used %s of its CPUs: lower the rate or give it more", percent(*p.Process))
	case has(p.GroupPressure, pressed):
		return fmt.Sprintf("for %s of the time something in k6's cgroup waited for a CPU: raise its limit, or run less beside it", percent(*p.GroupPressure))
	}
	return "neither k6 nor others used much of the CPUs: look for what stops the process, such as a debugger, swapping or a laptop's power saving"
}
