package cells

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Outcome is the outcome of a cell.
type Outcome struct {
	Cell
	Result   *result.Result `json:"-"`               // nil if the cell failed
	Error    string         `json:"error,omitempty"` // the reason if there is no result
	ExitCode int            `json:"exitCode"`        // -1 if the process did not start
	Started  time.Time      `json:"started"`
}

// Verdict returns the verdict of the run with the codes of its reasons.
func (o Outcome) Verdict() string {
	if o.Result == nil {
		return "FAILED: " + o.Error
	}
	v := o.Result.Verdict
	text := report.Validity(v)
	if codes := reason.Codes(v.Invalid()); codes != "" {
		text += ": " + codes
	}
	if o.ExitCode != 0 {
		text += fmt.Sprintf(", exit code %d", o.ExitCode)
	}
	return text
}

// Valid reports whether the run has a valid result.
func (o Outcome) Valid() bool { return o.Result != nil && o.Result.Verdict.Valid }

// Proof returns the meaning of confirmations in the run.
func (o Outcome) Proof() string {
	var all result.Topic
	if o.Result == nil {
		return ""
	}
	for i := range o.Result.Topics {
		all.Proves(o.Result.Topics[i].Proofs...)
	}
	return all.Meaning()
}

// Summary returns the run in a line for the terminal.
func (o Outcome) Summary() string {
	var parts []string
	for _, c := range Measured(o.Columns, o) {
		parts = append(parts, c.Title+" "+c.Show(c.Spread(o)).Text)
	}
	return strings.Join(append(parts, o.Verdict()), ", ")
}

// Measured returns the columns with a value in some run.
func Measured(columns []*Column, runs ...Outcome) []*Column {
	missing := func(c *Column) bool { return len(c.Spread(runs...).Values) == 0 }
	return slices.DeleteFunc(slices.Clone(columns), missing)
}

// Runs returns the table of all runs, with texts before their numbers.
func Runs(runs []Outcome, columns []*Column, heads []string, texts func(Outcome) []string) Table {
	columns = Measured(columns, runs...)
	t := Table{Title: "Every run, in the order of time", Heads: append([]string{"run"}, heads...)}
	for _, c := range columns {
		t.Heads = append(t.Heads, c.Title)
	}
	t.Heads = append(t.Heads, "verdict", "confirmed means", "started", "log")
	for _, o := range runs {
		folder := path.Join(Folder, o.Folder)
		number, _, _ := strings.Cut(o.Folder, "-")
		row := []Text{{Text: number}}
		if o.Result != nil {
			row[0].Link = path.Join(folder, report.PageFile)
		}
		for _, text := range texts(o) {
			row = append(row, Text{Text: text})
		}
		for _, c := range columns {
			row = append(row, c.Show(c.Spread(o)))
		}
		row = append(row, Text{Text: o.Verdict()}, Text{Text: o.Proof()})
		row = append(row, Text{Text: o.Started.UTC().Format(time.RFC3339)}, Text{Text: "log", Link: folder + LogSuffix})
		t.Rows = append(t.Rows, row)
	}
	return t
}
