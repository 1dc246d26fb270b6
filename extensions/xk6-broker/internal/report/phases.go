package report

import (
	"fmt"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// phaseRow is what was measured of a topic in a phase, or in the whole run.
type phaseRow struct {
	Name                      string
	When                      string // its stretches
	Seconds                   float64
	Leading                   bool
	Sent, Confirmed, Received int64
	ConfirmedRate             string
	ReceivedRate              string
	Errors                    int64
	Table                     tableView
}

// rate is how many there were of a counter in a second, where that is known.
func rate(t *result.Topic, c recording.Counter, format string) string {
	if n, seconds := t.RateBasis(c.String()); seconds > 0 {
		return fmt.Sprintf(format, n/seconds)
	}
	return "–"
}

// phasesOf gives the phases of a topic, or of all together, and the whole run behind them; none where the run has no phases.
func phasesOf(r *result.Result, topic func(*result.Result) result.Topic) (rows []phaseRow) {
	if len(r.Phases) == 0 {
		return nil
	}
	for _, p := range r.Phases {
		during := topic(r.During(p.Name))
		rows = append(rows, rowOf(p.Name, when(&p), p.Seconds, &during))
		rows[len(rows)-1].Leading = p.Name == r.Leading
	}
	whole := topic(r)
	return append(rows, rowOf("the whole run", fmt.Sprintf("0 s to %s", inSeconds(r.Seconds)), r.Seconds, &whole))
}

func rowOf(name, when string, seconds float64, t *result.Topic) phaseRow {
	row := phaseRow{
		Name: name, When: when, Seconds: seconds, Table: newTableView(t),
		Sent: t.Counts[recording.Sent.String()], Confirmed: t.Counts[recording.Confirmed.String()], Received: t.Counts[recording.Received.String()],
	}
	row.ConfirmedRate, row.ReceivedRate = rate(t, recording.Confirmed, "%.1f"), rate(t, recording.Received, "%.1f")
	for _, e := range t.Errors {
		row.Errors += e.Count
	}
	return row
}

// when names the stretches of a phase; those of several processes that overlap are one.
func when(p *result.Phase) string {
	var all []result.Stretch
	for _, s := range p.Stretches {
		if last := len(all) - 1; last >= 0 && s.From < all[last].To {
			all[last].To = max(all[last].To, s.To)
		} else {
			all = append(all, s)
		}
	}
	parts := make([]string, 0, len(all))
	for i, s := range all {
		if i == 3 && len(all) > 4 {
			return fmt.Sprintf("%s and %d more", strings.Join(parts, ", "), len(all)-i)
		}
		parts = append(parts, fmt.Sprintf("%s to %s", inSeconds(s.From), inSeconds(s.To)))
	}
	return strings.Join(parts, ", ")
}

func inSeconds(s float64) string { return fmt.Sprintf("%.3g s", s) }

// led writes, where a phase leads, what was measured in it, before the whole run.
func led(b *strings.Builder, r *result.Result, t *result.Topic) {
	p := r.Phase(r.Leading)
	if p == nil {
		wholeRun(b, r)
		return
	}
	if p.Afterwards {
		fmt.Fprintf(b, "  from %s\n", p.Name)
	} else {
		fmt.Fprintf(b, "  %s: %s\n", p.Name, when(p))
	}
	latencies(b, t)
	b.WriteString("\n")
	counts(b, t)
	b.WriteString("  rates: confirmed " + rate(t, recording.Confirmed, "%.4g/s"))
	if !t.OnlySends {
		b.WriteString(", received " + rate(t, recording.Received, "%.4g/s"))
	}
	b.WriteString("\n\n")
	wholeRun(b, r)
}

// wholeRun begins what is of the whole run, where that is divided.
func wholeRun(b *strings.Builder, r *result.Result) {
	if len(r.Phases) == 0 {
		return
	}
	var parts []string
	for _, p := range r.Phases {
		if !p.Afterwards {
			parts = append(parts, p.Name+" "+inSeconds(p.Seconds))
		}
	}
	line := "the whole run: " + inSeconds(r.Seconds)
	if len(parts) > 0 {
		line += " (" + strings.Join(parts, ", ") + ")"
	}
	Wrap(b, "  ", line)
}
