// Package report shows what a run found out, to people and to programs.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// few topics are shown one by one; of more there is the total, and a line for each.
const few = 3

// Text writes what a terminal shows at the end of a run.
func Text(w io.Writer, r *result.Result) error {
	var b strings.Builder
	test(&b, r)
	if len(r.Topics) > few {
		total(&b, r)
	} else {
		during := r.Led()
		for i := range r.Topics {
			topic(&b, r, &r.Topics[i], &during.Topics[i])
		}
	}
	platform(&b, r.Platform)
	verdictLines(&b, r)
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("text report: %w", err)
	}
	return nil
}

// test writes what was tested.
func test(b *strings.Builder, r *result.Result) {
	if len(r.Test.Scenarios) == 0 {
		return
	}
	script := r.Test.Script
	if script == "" {
		script = "a script from standard input"
	}
	fmt.Fprintf(b, "\n  %s", script)
	if s := r.Segment; s != nil {
		fmt.Fprintf(b, ", execution segment %s of %s", s.Of, s.Sequence)
	}
	b.WriteString("\n")
	for _, s := range r.Test.Scenarios {
		parts := []string{s.Executor, vus(s)}
		for _, f := range factsOf(s.Options) {
			parts = append(parts, f.String())
		}
		Wrap(b, "    ", s.Name+": "+strings.Join(parts, ", "))
	}
}

func topic(b *strings.Builder, r *result.Result, t, during *result.Topic) {
	fmt.Fprintf(b, "\n  %s · %s · topic %s", t.Driver, t.Broker, t.Topic)
	if t.Info.Server != "" {
		fmt.Fprintf(b, " · %s", t.Info.Server)
	}
	if t.Info.Embedded {
		b.WriteString(" (embedded broker)")
	}
	b.WriteString("\n")
	if short := inShort(t); short != "" {
		Wrap(b, "  ", short)
	}
	b.WriteString("\n")
	led(b, r, during)
	latencies(b, t)
	b.WriteString("\n")
	counts(b, t)
	groups(b, t)
}

// latencies writes the table, and what its signs mean.
func latencies(b *strings.Builder, t *result.Topic) {
	names, rows := tableOf(t)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\t count\t")
	for _, name := range names {
		fmt.Fprintf(table, "%s\t", name)
	}
	fmt.Fprintln(table, "max\t")
	var all []cell
	for _, r := range rows {
		fmt.Fprintf(table, "  %s\t%d\t", r.Label, r.Values.Count())
		for _, c := range r.Cells {
			fmt.Fprintf(table, "%s\t", c)
		}
		fmt.Fprintf(table, "%s\t\n", r.Max)
		all = append(all, r.Cells...)
	}
	_ = table.Flush() // a strings.Builder takes all that is written
	signs(b, all)
}

// signs explains those that some cell has.
func signs(b *strings.Builder, all []cell) {
	if slices.ContainsFunc(all, func(c cell) bool { return c.Known && c.Owed && !c.Doubted }) {
		b.WriteString("  * " + owedSign + "\n")
	}
	if slices.ContainsFunc(all, func(c cell) bool { return c.Known && c.Doubted }) {
		b.WriteString("  ? " + doubtedSign + "\n")
	}
}

// String is the cell on a terminal.
func (c cell) String() string {
	switch {
	case !c.Known:
		return "-"
	case c.Doubted:
		return Duration(c.Value) + "?"
	case c.Owed:
		return Duration(c.Value) + "*"
	}
	return Duration(c.Value)
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

func counts(b *strings.Builder, t *result.Topic) {
	confirm := ""
	if meaning := t.Meaning(); meaning != "" {
		confirm = " (" + meaning + ")"
	}
	line := fmt.Sprintf("due %d, sent %d, confirmed %d%s", t.Counts["due"], t.Counts["sent"], t.Counts["confirmed"], confirm)
	if !t.OnlySends {
		line += fmt.Sprintf(", received %d", t.Counts["received"])
	}
	for c := range recording.Counter(recording.NumCounters) {
		if n, there := t.Counts[c.String()]; !c.Always() && (n > 0 || there && c == recording.Acked) { // that nothing was acked must be seen
			line += fmt.Sprintf(", %s %d", c, n)
		}
	}
	Wrap(b, "  ", line)
	for _, e := range t.Errors {
		fmt.Fprintf(b, "  errors: %s %s %d\n", e.Op, e.Kind, e.Count)
	}
}

// readBack says what a broker has of what it confirmed.
func readBack(b *strings.Builder, g *result.Group) {
	if g.Uncertain > 0 {
		fmt.Fprintf(b, "  read back at the end: it could not be asked for %d of %d confirmed; of the others lost %d\n", g.Uncertain, g.Expected, g.Lost)
		return
	}
	fmt.Fprintf(b, "  read back at the end: %d of %d confirmed are there, lost %d\n", g.Drained, g.Expected, g.Lost)
}

func groups(b *strings.Builder, t *result.Topic) {
	if len(t.Groups) == 0 {
		if t.OnlySends {
			b.WriteString("  the driver only sends: what becomes of the messages is not observed\n")
		} else if t.Counts["sent"] > 0 && t.Trends[recording.RequestLatency.String()] == nil {
			b.WriteString("  nothing was received in this run, so loss could not be observed\n")
		}
		return
	}
	for _, g := range t.Groups {
		if g.Group == account.ReadBack {
			readBack(b, &g)
			continue
		}
		name := ""
		if len(t.Groups) > 1 || g.Group != "" {
			name = g.Group + ": "
		}
		if g.Subscribers > 1 {
			name = fmt.Sprintf("%d subscribers: ", g.Subscribers)
		}
		lost := fmt.Sprint(g.Lost)
		if g.Expected == 0 {
			lost = "- (" + unobserved + ")"
		}
		copies := func(n uint64) string {
			if !g.Copies() {
				return "-"
			}
			return fmt.Sprint(n)
		}
		reordered := copies(g.Reordered)
		if g.Unordered {
			reordered = "- (" + verdict.NoOrder + ")"
		}
		line := fmt.Sprintf("%slost %s, duplicated %s, reordered %s, corrupted %d, redelivered %s", name, lost, copies(g.Duplicated),
			reordered, t.Counts["corrupted"], copies(g.Redelivered))
		for _, o := range []struct {
			n         uint64
			name, doc string
		}{
			{g.Drained, "drained", "read at the end of the test, not by its consumers"},
			{g.Routed, "routed", "received on another topic"},
			{g.Uncertain, "uncertain", "not received, and it is not known what became of them"},
			{g.Undelivered, "undelivered", "still at the broker"},
			{g.Unexpected, "unexpected", "received, but not counted as sent to this group"},
		} {
			if o.n > 0 {
				line += fmt.Sprintf(", %s %d (%s)", o.name, o.n, o.doc)
			}
		}
		Wrap(b, "  ", line)
	}
}

// platform writes what a witness saw of the machine.
func platform(b *strings.Builder, p *result.Platform) {
	if p == nil || p.Hiccups.Count() == 0 {
		return
	}
	line := "this machine: woke a thread late by"
	for _, c := range columns[:4] {
		if p.Hiccups.Supported(c.q) {
			line += fmt.Sprintf(" %s %s,", c.name, Duration(p.Hiccups.Quantile(c.q)))
		}
	}
	line += " max " + Duration(p.Hiccups.Max())
	for _, s := range []struct {
		of, whose string
		value     *float64
	}{{"k6", "its", p.Process}, {"all processes", "the machine's", p.Host}, {"other machines", "the machine's", p.Steal}} {
		if s.value != nil {
			line += fmt.Sprintf("; %s used %.0f %% of %s CPUs", s.of, 100**s.value, s.whose)
		}
	}
	b.WriteByte('\n')
	Wrap(b, "  ", line+" (worst 5 s)")
}

func verdictLines(b *strings.Builder, r *result.Result) {
	b.WriteString("\n")
	if n := len(r.Checks); n > 0 {
		var passes, fails int64
		for _, c := range r.Checks {
			passes, fails = passes+c.Passes, fails+c.Fails
		}
		fmt.Fprintf(b, "  checks: %d passed, %d failed\n", passes, fails)
	}
	thresholds(b, r.Thresholds)
	of := ""
	if r.Verdict.Of != "" {
		of = ", of the phase " + r.Verdict.Of
	}
	fmt.Fprintf(b, "  verdict: %s%s\n", Validity(r.Verdict), of)
	sentences(b, "    because ", reason.Texts(r.Verdict.Invalid()))
	sentences(b, "    note: ", reason.Texts(r.Verdict.Notes()))
	b.WriteString("\n")
}

// Validity is the verdict in a word or two.
func Validity(v result.Verdict) string {
	if !v.Valid {
		return "NOT VALID"
	}
	text := "valid"
	if v.UpTo > 0 {
		text += " up to " + verdict.QuantileName(v.UpTo)
	}
	if v.Except != "" {
		text += ", but for the " + v.Except
	}
	return text
}

// mostSentences bounds what is said of a run with many topics.
const mostSentences = 12

func sentences(b *strings.Builder, head string, all []string) {
	for i, one := range all {
		if i == mostSentences {
			fmt.Fprintf(b, "    ... and %d more in report.html\n", len(all)-i)
			return
		}
		Wrap(b, head, one)
	}
}

// thresholds writes those that need to be looked at, and how many do not.
func thresholds(b *strings.Builder, all []result.Threshold) {
	held := 0
	for _, t := range all {
		if t.Held && t.Judged {
			held++
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(b, "  thresholds: %d of %d held\n", held, len(all))
	}
	for _, t := range all {
		if t.Held && t.Judged {
			continue
		}
		Wrap(b, "    ", fmt.Sprintf("%s %s: %s", t.Metric, t.Source, outcome(t)))
	}
}

// outcome says what came of a threshold.
func outcome(t result.Threshold) string {
	text := "did not hold"
	switch {
	case !t.Judged:
		text = "could not be judged"
	case t.Held:
		text = "held"
	}
	if t.Value != nil && t.Judged {
		text += fmt.Sprintf(": %.4g%s", *t.Value, unit(t.Metric))
	}
	if t.Why != "" {
		text += ": " + t.Why
	}
	return text
}

// unit is that of a metric's values, as k6 has them.
func unit(metric string) string {
	name, _, _ := strings.Cut(metric, "{")
	for _, suffix := range []string{"_latency", "_time", "_lag", "_wait"} {
		if strings.HasSuffix(name, suffix) {
			return " ms"
		}
	}
	return ""
}
