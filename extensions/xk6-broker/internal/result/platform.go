package result

import (
	"cmp"
	"fmt"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Platform is what a witness saw of the machine, and of who else was there, while messages were sent or received. The shares are those
// of the worst five seconds, 0 to 1, and absent where the platform does not tell.
type Platform struct {
	Hiccups       *hist.Histogram `json:"hiccups"`                 // how late a thread was that wakes every millisecond, in ns
	Process       *float64        `json:"process,omitempty"`       // of its CPUs, as many as GOMAXPROCS says, used by this process
	Host          *float64        `json:"host,omitempty"`          // of the machine's CPUs that the process may run on, used by all processes
	Others        *float64        `json:"others,omitempty"`        // of the same CPUs, used by all processes but this one
	Steal         *float64        `json:"steal,omitempty"`         // of the same CPUs, given to other machines by the hypervisor
	Pressure      *float64        `json:"pressure,omitempty"`      // of the time, some task of the machine waited for a CPU
	GroupPressure *float64        `json:"groupPressure,omitempty"` // the same of the process's cgroup: its own limit shows here
}

// Seen are the hiccups; nil where nobody watched.
func (p *Platform) Seen() *hist.Histogram {
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
	hiccups := hist.Merged(hist.Merged(nil, p.Hiccups), o.Hiccups)
	return &Platform{
		Hiccups: hiccups, Process: worse(p.Process, o.Process), Host: worse(p.Host, o.Host), Others: worse(p.Others, o.Others), Steal: worse(p.Steal, o.Steal),
		Pressure: worse(p.Pressure, o.Pressure), GroupPressure: worse(p.GroupPressure, o.GroupPressure),
	}
}

func worse(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

const (
	// crowded is the share of the CPUs that other processes may use before they are named as the cause of lateness, stolen that of the
	// hypervisor, and of other processes beside it; pressed is that of the time that tasks of the cgroup wait.
	crowded = 0.25
	stolen  = 0.05
	pressed = 0.25
	// exhausted is the share of the CPUs that all processes use where nothing is left to anybody.
	exhausted = 0.95
	// busy is the share of its CPUs beyond which more of them would help the generator.
	busy = 0.7
)

// advice says what would make the generator less late, by how late it was and how late the machine made a thread that only wakes. Where that is much less
// the script may be the cause, whose work before it sends nobody can tell from a generator that is late. It is named first, unless it is known who used the
// CPUs that k6 or its witness was short of; and named after that where no CPUs were left, as a thread that waits for one seldom misses it.
func (p *Platform) advice(late, hiccup time.Duration) string {
	const script = "at what the script does before it sends, such as a sleep or a request, and what it does after it while others wait for its VU"
	cause, known := p.cause()
	switch {
	case late <= 2*hiccup || known && (hiccup > owedFloor || p.busy()):
		return cause
	case known && p.Host != nil && *p.Host > exhausted:
		return cause + "; after that look " + script
	}
	return "look first " + script + "; apart from that, " + cause
}

// busy tells whether k6 was short of CPUs.
func (p *Platform) busy() bool { return p != nil && p.Process != nil && *p.Process > busy }

// cause says what it may be for all that was seen of the machine, and whether that is known by who used the CPUs.
func (p *Platform) cause() (text string, known bool) {
	if p == nil {
		return "lower the rate, or use a machine that is less busy", false
	}
	others, hypervisor := 0.0, 0.0
	if p.Others != nil {
		others = *p.Others
	}
	if p.Steal != nil {
		hypervisor = *p.Steal
	}
	neighbours := func() string {
		return fmt.Sprintf("other processes used %s of this machine's CPUs, k6 %s of its own: run the generator apart from them", percent(others), percent(*p.Process))
	}
	machines := func() string {
		return fmt.Sprintf("the hypervisor gave %s of the CPUs to other machines: use one that shares none", percent(hypervisor))
	}
	switch {
	case hypervisor > stolen && others > hypervisor:
		return neighbours() + "; " + machines(), true
	case hypervisor > stolen && others > stolen:
		return machines() + "; " + neighbours(), true
	case hypervisor > stolen:
		return machines(), true
	case others > crowded:
		return neighbours(), true
	case p.busy():
		return fmt.Sprintf("k6 used %s of its CPUs: lower the rate or give it more", percent(*p.Process)), true
	case p.GroupPressure != nil && *p.GroupPressure > pressed:
		return fmt.Sprintf("for %s of the time something in k6's cgroup waited for a CPU: raise its limit, or run less beside it", percent(*p.GroupPressure)), true
	}
	if p.Host == nil {
		return "what others used of the CPUs this system does not tell: look for what else runs, and for what stops the process, such as a debugger, swapping or a laptop's power saving", false
	}
	return "neither k6 nor others used much of the CPUs: look for what stops the process, such as a debugger, swapping or a laptop's power saving", false
}
