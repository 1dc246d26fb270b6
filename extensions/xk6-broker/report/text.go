// Package report shows what a run found out, to people and to programs.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// shown are the trends of the table, in its order, with what each measures.
var shown = []struct { //nolint:gochecknoglobals // a table
	trend load.Trend
	label string
}{
	{load.ScheduleLag, "schedule lag (due → sent)"},
	{load.GeneratorLag, "of it the generator's own"},
	{load.PublishLatency, "publish latency (due → confirmed)"},
	{load.PublishTime, "publish time (sent → confirmed)"},
	{load.FailedLatency, "failed sends (due → error)"},
	{load.RequestLatency, "request latency (due → reply)"},
	{load.RequestTime, "request time (sent → reply)"},
	{load.E2ELatency, "end-to-end latency (due → received)"},
	{load.E2ETime, "end-to-end time (sent → received)"},
	{load.SettleTime, "settle time (ack → confirmed)"},
	{load.RedeliveryTime, "redelivery time (requeued → received)"},
}

// columns are the quantiles of the table. One is printed only where at least 10 samples lie beyond it.
var columns = []struct { //nolint:gochecknoglobals // a table
	q    float64
	name string
}{
	{0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}, {0.999, "p99.9"}, {0.9999, "p99.99"}, {0.99999, "p99.999"}, {0.999999, "p99.9999"},
}

// Text writes the table that a terminal shows at the end of a run.
func Text(w io.Writer, r *load.Result) error {
	var b strings.Builder
	for i := range r.Topics {
		topic(&b, &r.Topics[i])
	}
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

// latencies writes a row for each trend that has samples.
func latencies(b *strings.Builder, t *load.TopicResult) {
	most := supportedColumns(t)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\t count\t")
	for _, c := range columns[:most] {
		fmt.Fprintf(table, "%s\t", c.name)
	}
	fmt.Fprintln(table, "max\t")
	for _, s := range shown {
		if h := t.Trends[s.trend.String()]; h != nil {
			row(table, label(s.trend, s.label, t.OpenLoop), h, most)
		}
	}
	_ = table.Flush() // a strings.Builder takes all that is written
}

// supportedColumns is how many columns any row supports.
func supportedColumns(t *load.TopicResult) int {
	most := 0
	for _, s := range shown {
		if h := t.Trends[s.trend.String()]; h != nil {
			for i, c := range columns {
				if h.Supported(c.q) {
					most = max(most, i+1)
				}
			}
		}
	}
	return most
}

// label says of a closed loop that its latency is service time.
func label(trend load.Trend, text string, open bool) string {
	if trend == load.PublishLatency && !open {
		return "publish latency (closed loop: sent → confirmed)"
	}
	return text
}

func row(w io.Writer, name string, h *hist.Histogram, most int) {
	fmt.Fprintf(w, "  %s\t%d\t", name, h.Count())
	for _, c := range columns[:most] {
		cell := "-"
		if h.Supported(c.q) {
			cell = Duration(h.Quantile(c.q))
		}
		fmt.Fprintf(w, "%s\t", cell)
	}
	fmt.Fprintf(w, "%s\t\n", Duration(h.Max()))
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
	for _, name := range []string{"acked", "requeued", "rejected", "unstamped", "foreign", "blocked"} {
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
		fmt.Fprintf(b, "  %slost %d, duplicated %d, reordered %d, corrupted %d, redelivered %d", name, g.Lost, g.Duplicated,
			g.Reordered, t.Counts["corrupted"], g.Redelivered)
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

func verdict(b *strings.Builder, r *load.Result) {
	word := "valid"
	if !r.Verdict.Valid {
		word = "NOT VALID"
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
