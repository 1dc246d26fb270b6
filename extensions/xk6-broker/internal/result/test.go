package result

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Test is the script and its scenarios.
type Test struct {
	Script    string     `json:"script"` // its file's name
	Scenarios []Scenario `json:"scenarios"`
}

// Scenario is one of the test's scenarios, over all processes.
type Scenario struct {
	Name     string         `json:"name"`
	Executor string         `json:"executor"`
	Exec     string         `json:"exec"` // the function of the script that it runs
	VUs      uint64         `json:"vus"`
	MaxVUs   uint64         `json:"maxVUs"`  // the most while it runs
	Options  map[string]any `json:"options"` // its other options
}

// Runs reports whether a scenario has one of the executors.
func (t *Test) Runs(executors ...string) bool {
	return slices.ContainsFunc(t.Scenarios, func(s Scenario) bool { return slices.Contains(executors, s.Executor) })
}

// Check is one of the script's checks.
type Check struct {
	Name   string `json:"name"` // with the k6 groups around it: "group::check"
	Passes int64  `json:"passes"`
	Fails  int64  `json:"fails"`
}

// Annotation is an event that the script reported.
type Annotation struct {
	At   float64 `json:"at"` // seconds from the start
	What string  `json:"what"`
}

// Segment is the part of a test that one of its processes ran.
type Segment struct {
	Of       string   `json:"of"`             // from where to where, such as "1/3:2/3"
	Sequence string   `json:"sequence"`       // the ends of all segments, such as "0,1/3,2/3,1"
	Idle     []string `json:"idle,omitempty"` // scenarios that have no VU in it

	Nameless bool `json:"-"` // the process has no BROKER_RUN
}

// Clock is the coordinator's clock minus a process's, in ns.
type Clock struct {
	Offset int64 `json:"offset"`
	Bound  int64 `json:"bound"` // give or take

	// Processes on one machine share a monotonic clock, which compares theirs more exactly.
	Machine     string `json:"machine,omitempty"`
	Anchor      int64  `json:"anchor,omitempty"`      // the process's clock when that is 0
	AnchorBound int64  `json:"anchorBound,omitempty"` // give or take
}

// Clocks is the clock of one process minus that of another, in ns.
type Clocks struct {
	Of     string `json:"of"`
	Than   string `json:"than"`
	Offset int64  `json:"offset"`
	Bound  int64  `json:"bound"` // give or take
	Same   bool   `json:"same"`  // both are read from the clock of one machine
}

// Most returns the greatest difference that is possible.
func (c Clocks) Most() int64 { return max(c.Offset, -c.Offset) + c.Bound }

// Wrong reports whether the clocks differ for certain.
func (c Clocks) Wrong() bool { return max(c.Offset, -c.Offset) > c.Bound }

// Platform is the state of the machine while messages were sent or received. The shares are those
// of the worst five seconds, 0 to 1, and absent if the platform does not report them.
type Platform struct {
	Hiccups       *hist.Histogram `json:"hiccups"`                 // delays of a thread that wakes every millisecond, ns
	Process       *float64        `json:"process,omitempty"`       // of its CPUs (GOMAXPROCS), used by this process
	Host          *float64        `json:"host,omitempty"`          // of the CPUs it may run on, used by all processes
	Others        *float64        `json:"others,omitempty"`        // of the same CPUs, used by all other processes
	Steal         *float64        `json:"steal,omitempty"`         // of the same CPUs, given to other machines
	Pressure      *float64        `json:"pressure,omitempty"`      // of the time, some task waited for a CPU
	GroupPressure *float64        `json:"groupPressure,omitempty"` // the same in the process's cgroup
}

// Seen returns the hiccups; nil without a monitor.
func (p *Platform) Seen() *hist.Histogram {
	if p == nil {
		return nil
	}
	return p.Hiccups
}

// Proof is the meaning of a confirmation for some producers of a topic.
type Proof struct {
	Confirm string `json:"confirm"`       // "unconfirmed", "accepted" or "replicated"
	How     string `json:"how,omitempty"` // by which setting
}

// confirms are the meanings, the weakest first.
var confirms = []string{"unconfirmed", "accepted", "replicated"}

// Proves adds proofs, without repetitions. The weakest comes first, and is the topic's Confirm.
func (t *Topic) Proves(proofs ...Proof) {
	for _, p := range proofs {
		if !slices.Contains(t.Proofs, p) {
			t.Proofs = append(t.Proofs, p)
		}
	}
	slices.SortFunc(t.Proofs, func(a, b Proof) int {
		weaker := cmp.Compare(slices.Index(confirms, a.Confirm), slices.Index(confirms, b.Confirm))
		return cmp.Or(weaker, cmp.Compare(a.How, b.How))
	})
	if len(t.Proofs) > 0 {
		t.Confirm = t.Proofs[0].Confirm
	}
}

// Meaning returns the proofs of the topic in words; "" if nothing was sent.
func (t *Topic) Meaning() string {
	var all []string
	for _, p := range t.Proofs {
		text := p.Confirm
		if p.How != "" {
			text += ": " + p.How
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// MostUses bounds how many different users of one kind are kept.
const MostUses = 16

// Uses are the options of the users of a topic, by the kind of user: "connect", "topic",
// "producer", "consumer", "produce" or "consume". They are in the order of their JSON, and equal
// options are there once.
type Uses map[string][]map[string]any

// Add adds the options of a user.
func (u Uses) Add(kind string, options map[string]any) {
	text := func(o map[string]any) string {
		encoded, _ := json.Marshal(o) // scalars and lists of them
		return string(encoded)
	}
	i, found := slices.BinarySearchFunc(u[kind], text(options), func(o map[string]any, wanted string) int {
		return cmp.Compare(text(o), wanted)
	})
	if !found && len(u[kind]) < MostUses {
		u[kind] = slices.Insert(slices.Clone(u[kind]), i, options)
	}
}
