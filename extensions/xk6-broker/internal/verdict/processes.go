package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// startedTogether is how far apart processes may begin the test or a phase.
const startedTogether = time.Second

// k6Arrivals are k6's own executors with a rate. They do not wait for other processes.
var k6Arrivals = []string{"constant-arrival-rate", "ramping-arrival-rate"}

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
	if len(m.parts) > 1 && m.uncompared() {
		j.note(place{}, reason.Clocks, facts{"why": "not-compared", "count": len(m.parts)})
	}
	var all []reason.Reason
	for i, p := range m.parts {
		for _, r := range p.Result.Verdict.Reasons {
			killed := p.Ledger.Unfinished && r.Level == reason.Invalid // its end is not that of the test
			covers := func(have reason.Reason) bool { return have.Covers(r) }
			if !killed && !r.ByMerge() && !slices.ContainsFunc(j.Reasons, covers) {
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
		j.invalid(place{}, reason.ProcessMissing, facts{
			"why": "absent", "count": m.processes - here, "processes": m.processes,
			"names": strings.Join(m.siblings.Absent, ", "),
		})
	}
	if m.processes == 0 {
		j.note(place{}, reason.ProcessMissing, facts{"why": "unknown", "count": here})
	}
	for _, instance := range slices.Sorted(maps.Keys(m.absent)) {
		values := facts{"why": "unmerged", "count": m.absent[instance], "name": fmt.Sprintf("instance %d", instance)}
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
		values := facts{"why": "killed", "name": m.process(i), "after": p.Ended().Sub(p.Result.Started)}
		j.Add(place{}.reason(reason.ProcessMissing, level, values))
	}
}

// judgeLoads adds that the processes' loads are not the one that was asked for: each execution
// segment must be run once, of one test, at one time. A coordinator starts them together, but for
// k6's own arrivals.
func (m *merger) judgeLoads(j *judge) {
	var first, earliest, latest *result.Result
	segments := map[string]string{} // the names of their processes
	for _, p := range m.parts {
		r := p.Result
		if r.Segment == nil {
			continue
		}
		first = cmp.Or(first, r)
		other, twice := segments[r.Segment.Of]
		if twice || r.Segment.Sequence != first.Segment.Sequence || !reflect.DeepEqual(r.Test, first.Test) {
			names := cmp.Or(other, first.Name) + " and " + r.Name
			j.invalid(place{}, reason.ProcessesDiffer, facts{"why": "load", "names": names})
			return
		}
		segments[r.Segment.Of] = r.Name
		if r.Clock == nil || r.Test.Runs(k6Arrivals...) {
			earliest, latest = cmp.Or(earliest, r), r
		}
	}
	if first != nil && m.processes == 0 && len(segments) < strings.Count(first.Segment.Sequence, ",") {
		names := strings.Join(slices.Sorted(maps.Keys(segments)), ", ")
		j.invalid(place{}, reason.ProcessesDiffer, facts{"why": "segments", "detail": names})
	}
	if earliest == nil {
		return
	}
	limit := max(startedTogether, time.Duration(earliest.Seconds/20*float64(time.Second)))
	if gap := latest.Started.Sub(earliest.Started); gap > limit {
		names := earliest.Name + " and " + latest.Name
		j.invalid(place{}, reason.ProcessesDiffer, facts{"why": "begin", "names": names, "apart": gap})
	}
}

// judgePhases adds the first phase that the processes did not begin together.
func (m *merger) judgePhases(j *judge) {
	all := m.result.Recording.Begins()
	for _, phase := range m.result.PhaseNames() {
		for i := range all {
			for k := range all {
				a, b := all[i][phase], all[k][phase]
				lacks := len(a) > len(b) && !m.parts[k].Ledger.Unfinished
				var gap time.Duration
				for n := range min(len(a), len(b)) {
					gap = max(gap, time.Duration(b[n]-a[n]))
				}
				if lacks || gap > startedTogether {
					names := m.parts[i].Result.Name + " and " + m.parts[k].Result.Name
					j.invalid(place{}, reason.ProcessesDiffer, facts{"why": "phase", "detail": phase, "names": names})
					return
				}
			}
		}
	}
}

// compare compares two clocks; false if one was not compared with the coordinator's.
func compare(a, b *result.Result) (c result.Clocks, ok bool) {
	if a.Clock == nil || b.Clock == nil {
		return c, false
	}
	c.Offset, c.Bound = b.Clock.Offset-a.Clock.Offset, a.Clock.Bound+b.Clock.Bound
	if a.Clock.Machine != "" && a.Clock.Machine == b.Clock.Machine {
		exact := c
		exact.Offset, exact.Bound, exact.Same = a.Clock.Anchor-b.Clock.Anchor, a.Clock.AnchorBound+b.Clock.AnchorBound, true
		if max(exact.Offset-c.Offset, c.Offset-exact.Offset) <= exact.Bound+c.Bound {
			return exact, true
		}
	}
	return c, true
}

// compareClocks sets how far the clocks of each two processes are apart. The worst two count for
// each topic that several processes used.
func (m *merger) compareClocks() {
	var worst *result.Clocks
	for i, a := range m.parts {
		for k, b := range m.parts[:i] {
			c, ok := compare(a.Result, b.Result)
			if !ok {
				continue
			}
			c.Of, c.Than = m.process(i), m.process(k)
			m.result.Clocks = append(m.result.Clocks, c)
			if worst == nil || c.Most() > worst.Most() {
				worst = &c
			}
		}
	}
	for i := range m.result.Topics {
		t, users := &m.result.Topics[i], 0
		for _, p := range m.parts {
			uses := func(o result.Topic) bool { return m.find(o.Broker, o.Driver, o.Topic) == t }
			if slices.ContainsFunc(p.Result.Topics, uses) {
				users++
			}
		}
		if users > 1 {
			t.Apart = worst
		}
	}
}

// uncompared reports whether the clock of a process was not compared.
func (m *merger) uncompared() bool {
	return slices.ContainsFunc(m.parts, func(p Part) bool { return p.Result.Clock == nil })
}

// clocksText describes the difference of two clocks.
func clocksText(c *result.Clocks) string {
	ahead, than, by := c.Of, c.Than, c.Offset
	if by < 0 {
		ahead, than, by = than, ahead, -by
	}
	offset, bound := reason.Duration(time.Duration(by)), reason.Duration(time.Duration(c.Bound))
	return fmt.Sprintf("the clock of %s is %s ± %s ahead of that of %s", ahead, offset, bound, than)
}
