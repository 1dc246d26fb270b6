package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason"
)

// verdict adds what only the whole can tell, and what the processes had to say of themselves. The thresholds of one are none of all
// together.
func (m *merger) verdict() {
	v := &m.result.Verdict
	m.missing(v)
	judgeProcesses(v, m.parts)
	if m.diverged {
		v.note(subject{}, reason.ProcessesDiffer, reason.Values{"why": "phases"})
	} else {
		judgePhases(v, m.parts)
	}
	judgeRepeated(v, m.parts)
	for i, p := range m.parts {
		if !p.Ledger.Unfinished {
			continue
		}
		level := reason.Invalid
		if m.known.Killed {
			level = reason.Note
		}
		v.Add(subject{}.reason(reason.ProcessMissing, level, reason.Values{"why": "killed", "name": m.process(i), "after": p.Ended().Sub(p.Result.Started)}))
	}
	for _, i := range slices.Sorted(maps.Keys(m.unlogged)) {
		v.note(subject{}, reason.OverTime, reason.Values{"why": "no-log", "detail": m.process(i) + ": " + m.unlogged[i].Error()})
	}
	if len(m.parts) > 1 && (m.uncompared || len(m.result.Clocks) == 0) {
		v.note(subject{}, reason.Clocks, reason.Values{"why": "not-compared", "count": len(m.parts)})
	}
	if m.askedLate {
		v.note(subject{}, reason.Undelivered, reason.Values{
			"why": "asked-late", "at": instant(time.Now()), "ended": instant(m.result.Started.Add(time.Duration(m.result.Seconds * float64(time.Second)))),
		})
	}
	m.own(v)
}

// own adds what processes say of themselves and the whole does not: of what several say the worst.
func (m *merger) own(v *Verdict) {
	var all []reason.Reason
	for i, p := range m.parts {
		for _, r := range p.Result.Verdict.Reasons {
			// What a process that was killed says of its end is nothing of the whole, because the test went on.
			if r.ByMerge() || p.Ledger.Unfinished && r.Level == reason.Invalid || slices.ContainsFunc(v.Reasons, func(whole reason.Reason) bool { return whole.Covers(r) }) {
				continue
			}
			r.Process = m.process(i)
			all = append(all, r)
		}
	}
	for _, r := range reason.Worst(all) {
		v.Add(r)
	}
}

// missing says which processes are not here, as far as that is known.
func (m *merger) missing(v *Verdict) {
	if here := len(m.parts); m.processes > here {
		v.invalid(subject{}, reason.ProcessMissing, reason.Values{
			"why": "absent", "count": m.processes - here, "processes": m.processes, "names": strings.Join(m.known.Absent, ", "),
		})
	}
	for _, instance := range slices.Sorted(maps.Keys(m.absent)) {
		v.invalid(subject{}, reason.ProcessMissing, reason.Values{"why": "unmerged", "count": m.absent[instance], "name": fmt.Sprintf("instance %d", instance)})
	}
	if m.processes == 0 {
		v.note(subject{}, reason.ProcessMissing, reason.Values{"why": "unknown", "count": len(m.parts)})
	}
}
