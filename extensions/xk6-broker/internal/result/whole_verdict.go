package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// verdict adds what only the whole can tell, and what the processes had to say of themselves. The thresholds of one are none of all
// together.
func (m *merger) verdict() {
	v := &m.result.Verdict
	m.missing(v)
	for _, flaw := range processFlaws(m.parts) {
		v.because(latencies|account, "%s", flaw)
	}
	if !m.diverged {
		for _, flaw := range phasesBegunApart(m.parts) {
			v.because(latencies, "%s", flaw)
		}
	}
	judgeRepeated(v, m.parts)
	for i, p := range m.parts {
		if !p.Ledger.Unfinished { // else what it says of a test that went on is nothing of the whole
			continue
		}
		name := m.teller(i, 1)
		if !m.known.Killed {
			v.because(latencies|account, "%s was killed: the test ended before its time", name)
		}
		v.note("%s was killed: what it found out after %s, %v after its start, when it wrote its results for the last time, is not known", name, instant(p.Ended()), p.Ended().Sub(p.Result.Started).Round(100*time.Millisecond))
	}
	m.reasons(v)
	if m.diverged {
		v.note("the processes had different phases, so that the whole has none")
	}
	m.notes(v)
	m.doubts(v)
	switch {
	case !m.askedLate && slices.ContainsFunc(m.result.Topics, func(t Topic) bool { return slices.ContainsFunc(t.Groups, doubted) }):
		v.note("what is uncertain the broker may still tell: ask it with --broker URL")
	case m.askedLate:
		v.note("what the brokers had was asked at %s, when all processes had ended, and is taken for what they had at the end of the last, at %s",
			instant(time.Now()), instant(m.result.Started.Add(time.Duration(m.result.Seconds*float64(time.Second)))))
	}
	for _, i := range slices.Sorted(maps.Keys(m.unlogged)) {
		v.note("over time, quantiles are those of the process that had the worst, and there is no .hlog, of what %s measured too: %v", m.teller(i, 1), m.unlogged[i])
	}
	if len(m.parts) > 1 && (m.uncompared || len(m.result.Clocks) == 0) {
		v.note("of %d processes: latencies between them are by the clocks of their machines, which were not compared", len(m.parts))
	}
}

func doubted(g Group) bool { return g.Uncertain > 0 }

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
		which := ""
		if len(m.known.Absent) > 0 {
			which = " (" + strings.Join(m.known.Absent, ", ") + ")"
		}
		v.because(latencies|account, "%d of the %d processes of the test are missing%s: merge their results too", m.processes-here, m.processes, which)
	}
	for _, instance := range slices.Sorted(maps.Keys(m.absent)) {
		if name := m.peer(instance); name != "" {
			v.because(latencies|account, "a process is missing: %d messages came from %s, instance %d, whose result is none of these; merge it too: one that was killed "+
				"leaves what it had written meanwhile, with BROKER_REPORT_MEANWHILE", m.absent[instance], name, instance)
			continue
		}
		v.because(latencies|account, "a process is missing: %d messages came from instance %d, whose result is none of these; "+
			"merge it too, or, if it was an earlier test, give each test a BROKER_RUN of its own", m.absent[instance], instance)
	}
	if m.processes != 0 {
		return
	}
	text := fmt.Sprintf("that these %d processes are all of the test is not known: if they are, say so with --processes %d, or give each of them "+
		"BROKER_PROCESSES=%d", len(m.parts), len(m.parts), len(m.parts))
	for _, t := range m.result.Topics {
		if slices.ContainsFunc(t.Groups, func(g Group) bool { return g.Why[account.MissingProcess] > 0 }) {
			v.because(account, "%s", text)
			return
		}
	}
	v.note("%s", text)
}
