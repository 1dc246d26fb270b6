package verdict

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// startedTogether is how far apart processes may begin the test or a phase.
const startedTogether = time.Second

// k6Arrivals are k6's own executors with a rate of the test. They begin when k6 does, without waiting for other processes.
var k6Arrivals = []string{"constant-arrival-rate", "ramping-arrival-rate"}

// arrivals are the executors with a rate of the test.
var arrivals = append([]string{"open-arrival-rate", "producers"}, k6Arrivals...)

// process returns the name of a process in reasons.
func (m *merger) process(i int) string {
	name := fmt.Sprintf("process %d", i+1)
	if own := m.parts[i].Result.Name; own != "" {
		name += " (" + own + ")"
	}
	return name
}

// judge adds the reasons that only a merge can find, and the worst of each process's own.
func (m *merger) judge(j *judge) {
	m.judgeMissing(j)
	m.judgeLoads(j)
	m.judgePhases(j)
	if len(m.parts) > 1 && (m.uncompared || len(m.result.Clocks) == 0) {
		j.note(place{}, reason.Clocks, reason.Values{"why": "not-compared", "count": len(m.parts)})
	}
	var all []reason.Reason
	for i, p := range m.parts {
		for _, r := range p.Result.Verdict.Reasons {
			killed := p.Ledger.Unfinished && r.Level == reason.Invalid // its end is not that of the test
			if !killed && !r.ByMerge() && !slices.ContainsFunc(j.Reasons, func(have reason.Reason) bool { return have.Covers(r) }) {
				r.Process = m.process(i)
				all = append(all, r)
			}
		}
	}
	for _, r := range reason.Worst(all) {
		j.Add(r)
	}
}

// judgeMissing adds the processes that are missing or were killed.
func (m *merger) judgeMissing(j *judge) {
	here := len(m.parts)
	if m.processes > here {
		j.invalid(place{}, reason.ProcessMissing, reason.Values{
			"why": "absent", "count": m.processes - here, "processes": m.processes, "names": strings.Join(m.siblings.Absent, ", "),
		})
	}
	if m.processes == 0 {
		j.note(place{}, reason.ProcessMissing, reason.Values{"why": "unknown", "count": here})
	}
	for _, instance := range slices.Sorted(maps.Keys(m.absent)) {
		values := reason.Values{"why": "unmerged", "count": m.absent[instance], "name": fmt.Sprintf("instance %d", instance)}
		j.invalid(place{}, reason.ProcessMissing, values)
	}
	for i, p := range m.parts {
		if !p.Ledger.Unfinished {
			continue
		}
		level := reason.Invalid
		if m.siblings.Killed {
			level = reason.Note
		}
		values := reason.Values{"why": "killed", "name": m.process(i), "after": p.Ended().Sub(p.Result.Started)}
		j.Add(place{}.reason(reason.ProcessMissing, level, values))
	}
}

// judgeLoads adds that the processes' loads are not the one that was asked for: each execution segment must be run once, of
// one test, at one time.
func (m *merger) judgeLoads(j *judge) {
	var divided []Part
	repeated := map[string]int{}
	for _, p := range m.parts {
		if p.Result.Segment != nil {
			divided = append(divided, p)
			continue
		}
		for _, s := range p.Result.Test.Scenarios {
			if slices.Contains(arrivals, s.Executor) {
				repeated[s.Name]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(repeated)) {
		if n := repeated[name]; n > 1 {
			j.note(place{}, reason.ProcessesDiffer, reason.Values{"why": "repeated", "count": n, "detail": name})
		}
	}
	if len(divided) == 0 {
		return
	}
	m.judgeSegments(j, divided)
	judgeStarts(j, divided)
}

// judgeSegments adds the first difference between the parts of a divided test, and that they are not all of it.
func (m *merger) judgeSegments(j *judge, divided []Part) {
	first := divided[0].Result
	var segments []string
	for _, p := range divided {
		r := p.Result
		if r.Segment.Sequence != first.Segment.Sequence || !reflect.DeepEqual(r.Test, first.Test) {
			j.invalid(place{}, reason.ProcessesDiffer, reason.Values{"why": "load", "names": first.Name + " and " + r.Name})
			return
		}
		segments = append(segments, r.Segment.Of)
	}
	if len(divided) < m.processes { // which is a reason of its own
		return
	}
	var wanted []string
	cuts := strings.Split(first.Segment.Sequence, ",")
	for i := range len(cuts) - 1 {
		wanted = append(wanted, cuts[i]+":"+cuts[i+1])
	}
	slices.Sort(wanted)
	if slices.Sort(segments); !slices.Equal(segments, wanted) {
		j.invalid(place{}, reason.ProcessesDiffer, reason.Values{"why": "segments", "detail": strings.Join(segments, ", ")})
	}
}

// judgeStarts adds that parts of a divided test, in the order of their start, began apart. A coordinator starts them together.
func judgeStarts(j *judge, divided []Part) {
	apart := slices.DeleteFunc(slices.Clone(divided), func(p Part) bool { return p.Result.Clock != nil && !p.Result.Test.Runs(k6Arrivals...) })
	if len(apart) == 0 {
		return
	}
	earliest, latest := apart[0].Result, apart[len(apart)-1].Result
	limit := max(startedTogether, time.Duration(earliest.Seconds/20*float64(time.Second)))
	if d := latest.Started.Sub(earliest.Started); d > limit {
		j.invalid(place{}, reason.ProcessesDiffer, reason.Values{"why": "begin", "names": earliest.Name + " and " + latest.Name, "apart": d})
	}
}

// judgePhases adds the first phase that the processes did not begin together. A killed process lacks later ones.
func (m *merger) judgePhases(j *judge) {
	all := m.result.Recording.Begins()
	for _, phase := range m.result.PhaseNames() {
		for i := range all {
			for k := range all {
				a, b := all[i][phase], all[k][phase]
				lacks := len(a) > len(b) && !m.parts[k].Ledger.Unfinished
				var apart time.Duration
				for n := range min(len(a), len(b)) {
					apart = max(apart, time.Duration(b[n]-a[n]))
				}
				if !lacks && apart <= startedTogether {
					continue
				}
				values := reason.Values{"why": "phase", "detail": phase, "names": m.parts[i].Result.Name + " and " + m.parts[k].Result.Name}
				if apart > startedTogether {
					values["apart"] = apart
				}
				j.invalid(place{}, reason.ProcessesDiffer, values)
				return
			}
		}
	}
}

// compare compares two clocks; false if one was not compared with the coordinator's.
func compare(a, b *result.Result) (c result.Clocks, ok bool) {
	if a.Clock == nil || b.Clock == nil {
		return c, false
	}
	c = result.Clocks{Of: a.Name, Than: b.Name, Offset: b.Clock.Offset - a.Clock.Offset, Bound: a.Clock.Bound + b.Clock.Bound}
	if a.Clock.Machine != "" && a.Clock.Machine == b.Clock.Machine {
		exact := c
		exact.Offset, exact.Bound, exact.Same = a.Clock.Anchor-b.Clock.Anchor, a.Clock.AnchorBound+b.Clock.AnchorBound, true
		if max(exact.Offset-c.Offset, c.Offset-exact.Offset) <= exact.Bound+c.Bound {
			return exact, true
		}
	}
	return c, true
}

// compareClocks sets how far the clocks of each two processes are apart, and for each topic the worst of two that
// exchanged messages.
func (m *merger) compareClocks() {
	index := map[uint32]int{}
	compared := map[[2]int]result.Clocks{}
	for i, a := range m.parts {
		index[a.Ledger.Instance] = i
		for k, b := range m.parts[:i] {
			if c, ok := compare(a.Result, b.Result); ok {
				c.Of, c.Than = m.process(i), m.process(k)
				compared[[2]int{i, k}] = c
				m.result.Clocks = append(m.result.Clocks, c)
			}
		}
	}
	for to, p := range m.parts {
		for _, l := range p.Ledger.Topics {
			t := m.find(l.Broker, l.Driver, l.Topic)
			for _, instance := range sources(&l) {
				from, here := index[instance]
				if t == nil || !here || from == to {
					continue
				}
				if c, ok := compared[[2]int{max(from, to), min(from, to)}]; !ok {
					m.uncompared = true
				} else if t.Apart == nil || c.Most() > t.Apart.Most() {
					t.Apart = &c
				}
			}
		}
	}
}

// sources lists the processes that messages were received from.
func sources(l *account.TopicLedger) (instances []uint32) {
	for _, g := range l.Groups {
		for i := range g.Sources {
			from := uint32(g.Sources[i].ID >> 32) //gosec:disable G115 -- the upper half
			if g.Sources[i].Received.Len() > 0 && !slices.Contains(instances, from) {
				instances = append(instances, from)
			}
		}
	}
	return instances
}

// clocksText describes the difference of two clocks.
func clocksText(c *result.Clocks) string {
	ahead, than, by := c.Of, c.Than, c.Offset
	if by < 0 {
		ahead, than, by = than, ahead, -by
	}
	return fmt.Sprintf("the clock of %s is %s ± %s ahead of that of %s", ahead, reason.Duration(time.Duration(by)), reason.Duration(time.Duration(c.Bound)), than)
}
