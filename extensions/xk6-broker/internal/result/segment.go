package result

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Segment is the part of a test that one of its processes ran.
type Segment struct {
	Of       string   `json:"of"`             // from where to where, such as "1/3:2/3"
	Sequence string   `json:"sequence"`       // the ends of all segments, such as "0,1/3,2/3,1"
	Idle     []string `json:"idle,omitempty"` // scenarios that have no VU in it

	Nameless bool `json:"-"` // the process has no BROKER_RUN
}

// index returns the place of the segment in its sequence; -1 if it is not there.
func (s *Segment) index() int {
	cuts := strings.Split(s.Sequence, ",")
	for i := range len(cuts) - 1 {
		if s.Of == cuts[i]+":"+cuts[i+1] {
			return i
		}
	}
	return -1
}

// process returns the name of a process: its number by segment or, if not all have one, by its start.
func (m *merger) process(i int) string {
	number := i + 1
	if !slices.ContainsFunc(m.parts, func(p Part) bool { return p.Result.Segment == nil || p.Result.Segment.index() < 0 }) {
		number = m.parts[i].Result.Segment.index() + 1
	}
	if name := m.parts[i].Result.Name; name != "" {
		return fmt.Sprintf("process %d (%s)", number, name)
	}
	return fmt.Sprintf("process %d", number)
}

// Divided is the option of a loop of which each process has a part.
const Divided = "divided"

// arrivals are the executors with a rate of the test.
var arrivals = append([]string{"open-arrival-rate", "producers"}, k6Arrivals...)

// k6Arrivals are those that begin when k6 does, without waiting for other processes.
var k6Arrivals = []string{"constant-arrival-rate", "ramping-arrival-rate"}

// judgeLoads adds what makes the processes' loads other than the one that was asked for: each execution segment must be
// run once, of one load, at one time.
func (m *merger) judgeLoads(v *Verdict) {
	differ := func(why, names, detail string) {
		v.invalid(subject{}, reason.ProcessesDiffer, reason.Values{"why": why, "names": names, "detail": detail})
	}
	names, segments := map[string]string{}, map[string]string{}
	repeated := map[string]int{}
	var first, earliest, latest *Result
	shortest := time.Duration(1<<63 - 1)
	for _, p := range m.parts {
		r := p.Result
		if _, ok := names[r.Name]; ok && r.Name != "" {
			differ("twice", "", r.Name)
		}
		names[r.Name] = r.Name
		if r.Segment == nil {
			for _, s := range r.Test.Scenarios {
				if slices.Contains(arrivals, s.Executor) {
					repeated[s.Name]++
				}
			}
			continue
		}
		if first == nil {
			first = r
		}
		if detail := first.loadDiffers(r); detail != "" {
			differ("load", first.Name+" and "+r.Name, detail)
		}
		if other, ok := segments[r.Segment.Of]; ok {
			differ("twice", other+" and "+r.Name, "the execution segment "+r.Segment.Of)
		}
		segments[r.Segment.Of] = r.Name
		if r.Clock != nil && !r.Test.runs(k6Arrivals...) {
			continue // the coordinator started it
		}
		if earliest == nil {
			earliest = r
		}
		latest = r
		shortest = min(shortest, time.Duration(r.Seconds*float64(time.Second)))
	}
	for _, name := range slices.Sorted(maps.Keys(repeated)) {
		if n := repeated[name]; n > 1 {
			v.note(subject{}, reason.ProcessesDiffer, reason.Values{"why": "repeated", "count": n, "detail": name})
		}
	}
	if first == nil {
		return
	}
	cuts := strings.Split(first.Segment.Sequence, ",")
	for i := range len(cuts) - 1 {
		if segment := cuts[i] + ":" + cuts[i+1]; segments[segment] == "" {
			differ("segment-missing", "", segment)
		}
	}
	if earliest == nil {
		return
	}
	if apart := latest.Started.Sub(earliest.Started); apart > max(startedTogether, shortest/20) {
		v.invalid(subject{}, reason.ProcessesDiffer, reason.Values{"why": "begin", "names": earliest.Name + " and " + latest.Name, "apart": apart})
	}
}

// loadDiffers returns the first difference between the loads of two processes; "" if there is none.
func (r *Result) loadDiffers(o *Result) string {
	if a, b := r.Segment.Sequence, o.Segment.Sequence; a != b {
		return fmt.Sprintf("the execution segments are %s in the one, and %s in the other", a, b)
	}
	loads := func(t Test) map[string]Scenario {
		all := map[string]Scenario{}
		for _, s := range t.Scenarios {
			if slices.Contains(arrivals, s.Executor) {
				all[s.Name] = s
			}
		}
		return all
	}
	a, b := loads(r.Test), loads(o.Test)
	if len(a) != len(b) {
		return fmt.Sprintf("the one has %d scenarios with a rate, and the other %d", len(a), len(b))
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !reflect.DeepEqual(a[name], b[name]) {
			return fmt.Sprintf("scenario %s is %v in the one, and %v in the other", name, a[name].Options, b[name].Options)
		}
	}
	for _, t := range r.Topics {
		i := slices.IndexFunc(o.Topics, func(other Topic) bool { return other.Topic == t.Topic && other.Broker == t.Broker })
		if i >= 0 && !(t.dividedIn(&o.Topics[i]) && o.Topics[i].dividedIn(&t)) {
			return "their produce() loops to " + t.Topic + " have different options"
		}
	}
	return ""
}

// dividedIn reports whether another process has the same divided loops.
func (t *Topic) dividedIn(o *Topic) bool {
	return !slices.ContainsFunc(t.Options["produce"], func(loop map[string]any) bool {
		return loop[Divided] == true && !slices.ContainsFunc(o.Options["produce"], func(other map[string]any) bool { return reflect.DeepEqual(other, loop) })
	})
}
