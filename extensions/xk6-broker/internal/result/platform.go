package result

import (
	"cmp"
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

// blame returns why the generator was late, as a variant of [reason.PercentileNotReliable], and the share of the CPUs that tells, by how late it was and how late
// the machine made a thread that only wakes. Where that is much less, the script may be the cause, whose work before it sends cannot be told from a generator that
// is late. It is named unless it is known who used the CPUs that k6 or its witness was short of.
func (p *Platform) blame(late, hiccup time.Duration) (why string, cpu float64) {
	why, cpu = p.cause()
	if known := why != "machine"; late <= 2*hiccup || known && (hiccup > owedFloor || p.busy() || p.Host != nil && *p.Host > exhausted) {
		return why, cpu
	}
	return "script", 0
}

// busy tells whether k6 was short of CPUs.
func (p *Platform) busy() bool { return p != nil && p.Process != nil && *p.Process > busy }

// cause returns why the machine was late, and the share of the CPUs that tells. It is "machine" where that is not known.
func (p *Platform) cause() (why string, cpu float64) {
	if p == nil {
		return "machine", 0
	}
	value := func(share *float64) float64 {
		if share == nil {
			return 0
		}
		return *share
	}
	hypervisor, others := value(p.Steal), value(p.Others)
	switch {
	case hypervisor > stolen && hypervisor >= others:
		return "hypervisor", hypervisor
	case others > crowded || hypervisor > stolen && others > stolen:
		return "others", others
	case p.busy():
		return "k6", *p.Process
	case value(p.GroupPressure) > pressed:
		return "cgroup", *p.GroupPressure
	}
	return "machine", 0
}
