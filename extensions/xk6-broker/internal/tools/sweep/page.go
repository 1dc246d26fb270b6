package sweep

import (
	"cmp"
	_ "embed" // the page's content
	"encoding/csv"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

//go:embed sweep.html
var content string

var template = report.Template(content)

// Page is the page of a study: remarks, charts and tables.
type Page struct {
	Title   string
	When    string // what is run, and when
	Verdict string // in one line
	Class   string // of the verdict: valid, invalid or none
	Remarks []string
	Charts  []report.Chart
	Tables  []Table
	Asked   []Fact
}

// Table is a table of a page. The first column names the row.
type Table struct {
	Title string
	Heads []string
	Rows  [][]Text
}

// Text is a cell of a table.
type Text struct {
	Text, Title string
	Link        string
	Doubted     bool // it is not reliable, for the reason in Title
}

// Write writes the page into a folder.
func (p Page) Write(folder string) error {
	return report.WriteAtomic(filepath.Join(folder, PageFile), func(w io.Writer) error {
		return report.Page{Title: p.Title, Charts: p.Charts, Body: p}.Render(w, template)
	})
}

// Row is a cell of a study with the numbers of its columns.
type Row struct {
	Cell     Cell
	Error    string // why there is no result
	ExitCode int
	Started  time.Time
	Ended    time.Time
	Numbers  []Number // of the columns
	Meaning  string   // what a confirmation proved, in words
	Valid    bool
	Verdict  string
	Others   string // messages of other tests; "" if there were none
}

// Number is a column of a cell, or the median of its repetitions.
type Number struct {
	Value     float64
	Low, High float64
	Known     bool
	Why       string // it is not known
	Doubt     string // it is not reliable
}

// NewRow reads the columns of an outcome.
func NewRow(o Outcome, columns []measure.Measure) Row {
	row := Row{Cell: o.Cell, Error: o.Error, ExitCode: o.ExitCode, Started: o.Started, Ended: o.Ended, Numbers: make([]Number, len(columns))}
	for i, c := range columns {
		row.Numbers[i] = NumberOf(o.Result, c)
	}
	r := o.Result
	if r == nil {
		return row
	}
	row.Meaning, row.Valid, row.Verdict = Proof(r), r.Verdict.Valid, report.Validity(r.Verdict)
	if codes := reason.Codes(r.Verdict.Invalid()); codes != "" {
		row.Verdict += " (" + codes + ")"
	}
	for _, n := range r.Verdict.Notes() {
		if n.Code == reason.Foreign && n.Word("why") == "messages" {
			row.Others = reason.Text(n)
		}
	}
	return row
}

// NumberOf reads a measure of a result, which may be nil.
func NumberOf(r *result.Result, m measure.Measure) Number {
	if r == nil {
		return Number{Why: "the run has no result"}
	}
	v, err := m.OfRun(r)
	if err != nil {
		return Number{Why: err.Error()}
	}
	low, high := m.DoubtOfRun(r)
	return Number{Value: v, Low: v, High: v, Known: true, Doubt: cmp.Or(low, high)}
}

// Median returns the median of the numbers that are known.
func Median(numbers []Number) (n Number) {
	var values []float64
	for _, one := range numbers {
		if !one.Known {
			n.Why = cmp.Or(n.Why, one.Why)
			continue
		}
		n.Doubt = cmp.Or(n.Doubt, one.Doubt)
		values = append(values, one.Value)
	}
	if n.Known = len(values) > 0; n.Known {
		n.Value, n.Low, n.High = stationary.Median(values), slices.Min(values), slices.Max(values)
	}
	return n
}

// Show returns the number as a text: of repetitions with the least and the greatest.
func (n Number) Show(m measure.Measure) Text {
	if !n.Known {
		return Text{Text: "–", Title: n.Why}
	}
	text := m.Show(n.Value)
	if n.Low != n.High {
		text += fmt.Sprintf(" (%s to %s)", m.Show(n.Low), m.Show(n.High))
	}
	if n.Doubt != "" {
		text += "?"
	}
	return Text{Text: text, Title: n.Doubt, Doubted: n.Doubt != ""}
}

// Proof returns what confirmations proved in a run, in words.
func Proof(r *result.Result) string {
	var all result.Topic
	for i := range r.Topics {
		all.Proves(r.Topics[i].Proofs...)
	}
	return all.Meaning()
}

// known returns the places of the columns that some row has.
func known(columns []measure.Measure, rows []Row) (all []int) {
	for i := range columns {
		if slices.ContainsFunc(rows, func(r Row) bool { return r.Numbers[i].Known }) {
			all = append(all, i)
		}
	}
	return all
}

// CellsTable returns the table of all runs in the order of time, with more columns before the numbers.
func CellsTable(columns []measure.Measure, rows []Row, heads []string, more func(i int) []Text) Table {
	places := known(columns, rows)
	t := Table{Title: "Every run, in the order of time", Heads: append([]string{"run"}, heads...)}
	for _, c := range places {
		t.Heads = append(t.Heads, columns[c].Label())
	}
	t.Heads = append(t.Heads, "verdict", "confirmed means", "took", "log")
	for i, r := range rows {
		folder := path.Join(CellsFolder, r.Cell.Folder)
		line := append([]Text{{Text: strconv.Itoa(r.Cell.Index), Link: path.Join(folder, report.PageFile)}}, more(i)...)
		for _, c := range places {
			line = append(line, r.Numbers[c].Show(columns[c]))
		}
		verdict := Text{Text: r.Verdict, Title: r.Others, Doubted: !r.Valid}
		if r.Error != "" {
			line[0].Link, verdict.Text = "", "failed: "+r.Error
		}
		if r.ExitCode != 0 {
			verdict.Text += fmt.Sprintf(", exit code %d", r.ExitCode)
		}
		took := r.Ended.Sub(r.Started).Round(100 * time.Millisecond)
		t.Rows = append(t.Rows, append(line, verdict, Text{Text: r.Meaning}, Text{Text: took.String()}, Text{Text: "log", Link: path.Join(folder, LogFile)}))
	}
	return t
}

// WriteCSV writes a line for each run: more columns, the numbers (durations in nanoseconds), and the verdict. A number that
// is not known is empty.
func WriteCSV(folder string, columns []measure.Measure, rows []Row, heads []string, more func(i int) []string) error {
	return report.WriteAtomic(filepath.Join(folder, TableFile), func(w io.Writer) error {
		out := csv.NewWriter(w)
		head := append([]string{"cell", "started", "seconds"}, heads...)
		for _, c := range columns {
			head = append(head, strings.TrimSuffix(c.Label()+" ("+c.Unit+")", " ()"))
		}
		_ = out.Write(append(head, "valid", "confirmed means", "exit code", "error")) // Error returns the error
		for i, r := range rows {
			line := append([]string{
				strconv.Itoa(r.Cell.Index), r.Started.UTC().Format(time.RFC3339), strconv.FormatFloat(r.Ended.Sub(r.Started).Seconds(), 'f', 1, 64),
			}, more(i)...)
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
	})
}

// Chart returns a chart of a measure over points of an axis, with a line for each name; false if nothing is known.
func Chart(id string, m measure.Measure, label string, ticks []string, lines []string, number func(line, tick int) Number) (report.Chart, bool) {
	chart := report.Chart{
		ID: id, Title: m.Label(), Axis: "setting", Label: label, Unit: m.Unit, Ticks: ticks, Lines: []report.Line{},
		Note: "The median of the repetitions; the bars run from the least to the greatest.",
	}
	for i, tick := range ticks {
		x, err := strconv.ParseFloat(tick, 64)
		if err != nil || i > 0 && x <= chart.X[i-1] {
			chart.Apart, chart.X = true, nil
			break
		}
		chart.X = append(chart.X, x)
	}
	if chart.Apart {
		for i := range ticks {
			chart.X = append(chart.X, float64(i))
		}
	} else if first, last := chart.X[0], chart.X[len(chart.X)-1]; first > 0 && last/first >= 20 {
		chart.Decades = true
	}
	scale := 1.0
	if m.Unit == "ns" {
		chart.Unit, chart.Log, scale = "ms", true, 1e-6
	}
	for i, name := range lines {
		line := report.Line{Label: name, Colour: i % report.Palette}
		found := false
		for k := range ticks {
			var median, low, high *float64
			if n := number(i, k); n.Known {
				a, b, c := n.Value*scale, n.Low*scale, n.High*scale
				median, low, high, found = &a, &b, &c, true
			}
			line.Values, line.Low, line.High = append(line.Values, median), append(line.Low, low), append(line.High, high)
		}
		if found {
			chart.Lines = append(chart.Lines, line)
		}
	}
	return chart, len(chart.Lines) > 0 && len(ticks) > 1
}
