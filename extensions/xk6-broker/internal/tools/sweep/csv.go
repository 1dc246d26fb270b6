package sweep

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// WriteCSV writes a line for each cell, in the order in which they ran: its settings, its columns (durations in nanoseconds, rates by second), what its result says of itself. What is
// not known is empty.
func WriteCSV(w io.Writer, p Plan, columns []measure.Measure, rows []Row) error {
	out := csv.NewWriter(w)
	head := []string{"cell", "repetition", "started", "seconds"}
	for _, s := range p.Settings {
		head = append(head, s.Name)
	}
	for _, c := range columns {
		head = append(head, title(c))
	}
	_ = out.Write(append(head, "valid", "confirmed means", "exit code", "error")) // Error tells
	for _, r := range rows {
		line := []string{
			strconv.Itoa(r.Cell.Index), strconv.Itoa(r.Cell.Repetition), r.Started.UTC().Format(time.RFC3339),
			strconv.FormatFloat(r.Ended.Sub(r.Started).Seconds(), 'f', 1, 64),
		}
		for _, s := range p.Settings {
			line = append(line, r.Cell.Settings.Of(s.Name))
		}
		for _, n := range r.Numbers {
			text := ""
			if n.Known {
				text = strconv.FormatFloat(n.Value, 'f', -1, 64)
			}
			line = append(line, text)
		}
		valid := ""
		if r.Error == "" {
			valid = strconv.FormatBool(r.Valid)
		}
		_ = out.Write(append(line, valid, r.Meaning, strconv.Itoa(r.ExitCode), r.Error))
	}
	out.Flush()
	return out.Error()
}

// title is a column's name with its unit.
func title(m measure.Measure) string {
	if m.Unit == "" {
		return m.Label()
	}
	return m.Label() + " (" + m.Unit + ")"
}
