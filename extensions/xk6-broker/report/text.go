// Package report shows what a run found out, to people and to programs.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// Text writes the table that a terminal shows at the end of a run.
func Text(w io.Writer, r *load.Result) error {
	var b strings.Builder
	for i := range r.Topics {
		topic(&b, &r.Topics[i])
	}
	platform(&b, r.Platform)
	verdict(&b, r)
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("text report: %w", err)
	}
	return nil
}

func topic(b *strings.Builder, t *load.TopicResult) {
	fmt.Fprintf(b, "\n  %s · %s · topic %s", t.Driver, t.Broker, t.Topic)
	if t.Info.Server != "" {
		fmt.Fprintf(b, " · %s", t.Info.Server)
	}
	if t.Info.Embedded {
		b.WriteString(" (embedded broker)")
	}
	b.WriteString("\n\n")
	latencies(b, t)
	counts(b, t)
	groups(b, t)
}

// latencies writes the table, and what its signs mean.
func latencies(b *strings.Builder, t *load.TopicResult) {
	names, rows := tableOf(t)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\t count\t")
	for _, name := range names {
		fmt.Fprintf(table, "%s\t", name)
	}
	fmt.Fprintln(table, "max\t")
	var owed, doubted bool
	for _, r := range rows {
		fmt.Fprintf(table, "  %s\t%d\t", r.Label, r.Values.Count())
		for _, c := range r.Cells {
			text := "-"
			switch {
			case c.Known && c.Doubted:
				text, doubted = Duration(c.Value)+"?", true
			case c.Known && c.Owed:
				text, owed = Duration(c.Value)+"*", true
			case c.Known:
				text = Duration(c.Value)
			}
			fmt.Fprintf(table, "%s\t", text)
		}
		fmt.Fprintf(table, "%s\t\n", Duration(r.Values.Max()))
	}
	_ = table.Flush() // a strings.Builder takes all that is written
	if owed {
		b.WriteString("  * more than a tenth of it is lateness of the generator or of its machine\n")
	}
	if doubted {
		b.WriteString("  ? not to be believed: see the verdict\n")
	}
}

// Duration writes nanoseconds with three significant digits.
func Duration(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", ns)
	case d < time.Millisecond:
		return significant(float64(ns)/1e3) + "µs"
	case d < time.Second:
		return significant(float64(ns)/1e6) + "ms"
	default:
		return significant(float64(ns)/1e9) + "s"
	}
}

func significant(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func counts(b *strings.Builder, t *load.TopicResult) {
	fmt.Fprintf(b, "\n  due %d, sent %d, confirmed %d (%s), received %d", t.Counts["due"], t.Counts["sent"],
		t.Counts["confirmed"], t.Confirm, t.Counts["received"])
	for _, name := range []string{"acked", "requeued", "rejected", "unstamped", "foreign", "sibling", "earlier", "routed", "aliased", "blocked"} {
		if n := t.Counts[name]; n > 0 {
			fmt.Fprintf(b, ", %s %d", name, n)
		}
	}
	b.WriteString("\n")
	for _, e := range t.Errors {
		fmt.Fprintf(b, "  errors: %s %s %d\n", e.Op, e.Kind, e.Count)
	}
}

func groups(b *strings.Builder, t *load.TopicResult) {
	if len(t.Groups) == 0 {
		if t.Counts["sent"] > 0 && t.Trends[load.RequestLatency.String()] == nil {
			b.WriteString("  nothing was received in this run: loss was not observed\n")
		}
		return
	}
	for _, g := range t.Groups {
		name := ""
		if len(t.Groups) > 1 || g.Group != "" {
			name = g.Group + ": "
		}
		if g.Subscribers > 1 {
			name = fmt.Sprintf("%d subscribers: ", g.Subscribers)
		}
		fmt.Fprintf(b, "  %slost %d, duplicated %d, reordered %d, corrupted %d, redelivered %d", name, g.Lost, g.Duplicated,
			g.Reordered, t.Counts["corrupted"], g.Redelivered)
		if g.Drained > 0 {
			fmt.Fprintf(b, ", drained %d (read at the end of the test, by none of its consumers)", g.Drained)
		}
		if g.Removed > 0 {
			fmt.Fprintf(b, ", removed %d (by the test, before they arrived)", g.Removed)
		}
		if g.Uncertain > 0 {
			fmt.Fprintf(b, ", uncertain %d (lost, or still at the broker)", g.Uncertain)
		}
		if g.Undelivered > 0 {
			fmt.Fprintf(b, ", undelivered %d (still at the broker)", g.Undelivered)
		}
		if g.Elsewhere > 0 {
			fmt.Fprintf(b, ", elsewhere %d (another process of the test has them, or they are lost)", g.Elsewhere)
		}
		if g.Unexpected > 0 {
			fmt.Fprintf(b, ", not expected %d (sent before the consumer was ready, or their send failed)", g.Unexpected)
		}
		b.WriteString("\n")
	}
}

// platform writes what a witness saw of the machine.
func platform(b *strings.Builder, p *load.Platform) {
	if p == nil || p.Hiccups.Count() == 0 {
		return
	}
	b.WriteString("\n  this machine: woke a thread late by")
	for _, c := range columns[:4] {
		if p.Hiccups.Supported(c.q) {
			fmt.Fprintf(b, " %s %s,", c.name, Duration(p.Hiccups.Quantile(c.q)))
		}
	}
	fmt.Fprintf(b, " max %s", Duration(p.Hiccups.Max()))
	for _, s := range []struct {
		of    string
		value *float64
	}{{"k6", p.Process}, {"all processes", p.Host}, {"other machines", p.Steal}} {
		if s.value != nil {
			fmt.Fprintf(b, "; %s used %.0f %% of its CPUs", s.of, 100**s.value)
		}
	}
	b.WriteString(" (worst 5 s)\n")
}

func verdict(b *strings.Builder, r *load.Result) {
	word := "valid"
	switch {
	case !r.Verdict.Valid:
		word = "NOT VALID"
	case r.Verdict.UpTo > 0:
		word = "valid up to " + load.QuantileName(r.Verdict.UpTo)
	}
	fmt.Fprintf(b, "\n  verdict: %s\n", word)
	for _, reason := range r.Verdict.Reasons {
		fmt.Fprintf(b, "    because %s\n", reason)
	}
	for _, note := range r.Verdict.Notes {
		fmt.Fprintf(b, "    note: %s\n", note)
	}
	b.WriteString("\n")
}
