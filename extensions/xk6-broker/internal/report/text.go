// Package report shows the result of a run: as text, as a page, and as a folder of files.
package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Text writes a result for a terminal: the verdict, the test, the measurements, the reasons.
func Text(w io.Writer, r *result.Result) error {
	var b strings.Builder
	during := ""
	if r.Verdict.Of != "" {
		during = ", of the phase " + r.Verdict.Of
	}
	fmt.Fprintf(&b, "\n  verdict: %s%s\n", Validity(r.Verdict), during)
	if len(r.Test.Scenarios) > 0 {
		b.WriteString("\n  " + r.Test.Script + "\n")
		scenariosOf(&r.Test).WriteLines(&b, "    ")
	}
	for _, s := range sections(r) {
		s.write(&b)
		if s.ID == totalID {
			b.WriteString("\n")
			topicsOf(r.Led()).Write(&b)
			break
		}
	}
	b.WriteString("\n")
	thresholdsOf(r.Thresholds).WriteLines(&b, "  threshold ")
	writeReasons(&b, "    because ", r.Verdict.Invalid())
	writeReasons(&b, "    note: ", r.Verdict.Notes())
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Validity is the verdict in a few words.
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

// broker returns the driver, the address and the server of a topic.
func broker(t *result.Topic) string {
	text := t.Driver + " · " + t.Broker
	if t.Info.Server != "" {
		text += " · " + t.Info.Server
	}
	if t.Info.Embedded {
		text += " (embedded broker)"
	}
	return strings.TrimPrefix(text, " · ") // of all topics
}

// write writes the leading phase, if there is one, the phases, and the whole run.
func (s *section) write(b *strings.Builder) {
	b.WriteString("\n  " + strings.TrimSuffix(s.Run.Topic+" · "+broker(&s.Run), " · ") + "\n")
	usersOf(&s.Run, briefOptions).WriteLines(b, "    ")
	b.WriteString("\n")
	if s.When != "" {
		b.WriteString("  " + s.When + "\n")
		writeMeasured(b, &s.Leading)
		b.WriteString("\n")
	}
	if len(s.Phases.Rows) > 0 {
		s.Phases.Write(b)
		fmt.Fprintf(b, "\n  the whole run: %s\n", s.Phases.Rows[len(s.Phases.Rows)-1].Doc)
	}
	writeMeasured(b, &s.Run)
	if why := unobservedReason(&s.Run); why != "" {
		Wrap(b, "  ", why)
	}
	accountOf(&s.Run).WriteLines(b, "  ")
}

// writeMeasured writes the latencies, counts, rates and errors of a topic.
func writeMeasured(b *strings.Builder, t *result.Topic) {
	latencies(t).Write(b)
	b.WriteString("\n")
	var counts []string
	for _, r := range countsOf(t).Rows {
		text := r.Label + " " + r.Cells[0].String()
		if meaning := t.Meaning(); r.Name == recording.Confirmed.String() && meaning != "" {
			text += " (" + meaning + ")"
		}
		counts = append(counts, text)
	}
	Wrap(b, "  ", strings.Join(counts, ", "))
	b.WriteString("  rates: confirmed " + rate(t, recording.Confirmed).String())
	if !t.OnlySends {
		b.WriteString(", received " + rate(t, recording.Received).String())
	}
	b.WriteString("\n")
	for _, r := range errorsOf(t).Rows {
		fmt.Fprintf(b, "  errors: %s %s\n", r.Label, r.Cells[0])
	}
}

func writeReasons(b *strings.Builder, head string, reasons []reason.Reason) {
	for _, text := range reason.Texts(reasons) {
		Wrap(b, head, text)
	}
}
