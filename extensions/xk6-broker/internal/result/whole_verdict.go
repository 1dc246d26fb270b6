package result

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
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
		values := reason.Values{"why": "killed", "name": m.process(i), "after": p.Ended().Sub(p.Result.Started)}
		if n := m.since[i]; n > 0 {
			values["count"] = n
		}
		v.Add(subject{}.reason(reason.ProcessMissing, level, values))
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

// sentSince returns how many messages others received that a process sent after it had written its results.
func (m *merger) sentSince(p Part) (n uint64, err error) {
	later := map[uint64]track.Set{} // by producer, as several groups may have received one message
	for _, producer := range p.Ledger.producers() {
		for _, other := range m.parts {
			for _, s := range other.Ledger.sources(producer.ID) {
				received, err := track.Load(s.Received)
				if err != nil {
					return 0, err
				}
				later[producer.ID] = later[producer.ID].Or(received.Within([]track.Bounds{{From: producer.Next, Until: math.MaxUint64}}))
			}
		}
	}
	for _, numbers := range later {
		n += numbers.Len()
	}
	return n, nil
}

// peer is what a process is called that others met; "" for one that none has met.
func (m *merger) peer(instance uint32) string {
	for _, p := range m.parts {
		for _, of := range p.Result.Peers {
			if of.Instance == instance {
				return called(of.Process, of.Name)
			}
		}
	}
	return ""
}

// missing says which processes are not here, as far as that is known.
func (m *merger) missing(v *Verdict) {
	if here := len(m.parts); m.processes > here {
		v.invalid(subject{}, reason.ProcessMissing, reason.Values{
			"why": "absent", "count": m.processes - here, "processes": m.processes, "names": strings.Join(m.known.Absent, ", "),
		})
	}
	for _, instance := range slices.Sorted(maps.Keys(m.absent)) {
		name := fmt.Sprintf("instance %d", instance)
		if known := m.peer(instance); known != "" {
			name = known + ", " + name
		}
		v.invalid(subject{}, reason.ProcessMissing, reason.Values{"why": "unmerged", "count": m.absent[instance], "name": name})
	}
	if m.processes == 0 {
		v.note(subject{}, reason.ProcessMissing, reason.Values{"why": "unknown", "count": len(m.parts)})
	}
}
