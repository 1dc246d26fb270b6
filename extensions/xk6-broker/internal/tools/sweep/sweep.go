package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// Sweep runs every cell of a plan.
type Sweep struct {
	Plan    Plan
	Columns []measure.Measure
	Folder  string
	Journal *Journal
	Run     func(context.Context, Cell) (Outcome, error) // [Runner.Run]
	Out     io.Writer

	rows []Row
}

// ErrStopped is the error of a study that was stopped before its last cell.
var ErrStopped = errors.New("the study was stopped: --resume goes on with it")

// Do runs the cells without a result, and returns how many still have none. When stop is closed it ends after the running
// cell, and when ctx ends, with it. Page and table are written after each cell.
func (s *Sweep) Do(ctx context.Context, stop <-chan struct{}) (failed int, err error) {
	cells := s.Plan.Cells()
	var left []Cell
	for _, c := range cells {
		if o, done := s.Journal.Outcome(c); done {
			s.rows = append(s.rows, NewRow(o, s.Columns))
		} else {
			left = append(left, c)
		}
	}
	slices.SortFunc(s.rows, func(a, b Row) int { return a.Started.Compare(b.Started) })
	s.say("%d cells in %d repetitions, in an order by the seed %d; %d are done", len(cells), s.Plan.Repeat, s.Plan.Seed, len(s.rows))
	if err := s.write(); err != nil {
		return 0, err
	}
	err = Each(ctx, stop, s.Journal, left, func(i int, spent time.Duration) {
		c := left[i]
		s.say("\n[%d/%d] repetition %d of %d: %s%s", c.Index, len(cells), c.Repetition, s.Plan.Repeat, c.Settings, TimeLeft(spent, i, len(left)))
	}, s.Run, func(o Outcome) error {
		s.rows = append(s.rows, NewRow(o, s.Columns))
		s.say("  %s", s.line(s.rows[len(s.rows)-1]))
		return s.write()
	})
	for _, r := range s.rows {
		if r.Error != "" {
			failed++
		}
	}
	return failed, err
}

// Each runs cells one after the other, and adds each outcome to the journal.
func Each(ctx context.Context, stop <-chan struct{}, j *Journal, cells []Cell, begin func(i int, spent time.Duration),
	run func(context.Context, Cell) (Outcome, error), end func(Outcome) error,
) error {
	var spent time.Duration
	for i, c := range cells {
		select {
		case <-stop:
			return ErrStopped
		default:
		}
		begin(i, spent)
		o, err := run(ctx, c)
		if err == nil {
			err = j.Add(o)
		}
		if err != nil {
			return err
		}
		if o.Cut {
			return ErrStopped
		}
		spent += o.Ended.Sub(o.Started)
		if err := end(o); err != nil {
			return err
		}
	}
	return nil
}

// TimeLeft returns how long the rest takes if it goes on as before; "" at the beginning.
func TimeLeft(spent time.Duration, done, total int) string {
	if done == 0 {
		return ""
	}
	return fmt.Sprintf(", about %v left", (spent / time.Duration(done) * time.Duration(total-done)).Round(time.Second))
}

func (s *Sweep) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...) // a closed terminal does not end a study
}

// line returns a cell in one line.
func (s *Sweep) line(r Row) string {
	if r.Error != "" {
		return "FAILED: " + r.Error
	}
	var parts []string
	for i, c := range s.Columns {
		if n := r.Numbers[i]; n.Known {
			parts = append(parts, c.Label()+" "+n.Show(c).Text)
		}
	}
	parts = append(parts, r.Verdict)
	if r.Others != "" {
		parts = append(parts, r.Others)
	}
	if r.ExitCode != 0 {
		parts = append(parts, fmt.Sprintf("exit code %d", r.ExitCode))
	}
	return strings.Join(parts, ", ")
}

// entry is a combination of settings with its repetitions.
type entry struct {
	settings Values
	rows     []Row
	numbers  []Number // medians
}

func (s *Sweep) entries() (all []entry) {
	for _, settings := range s.Plan.Combinations() {
		e := entry{settings: settings}
		for _, r := range s.rows {
			if slices.Equal(r.Cell.Settings, settings) {
				e.rows = append(e.rows, r)
			}
		}
		for i := range s.Columns {
			var numbers []Number
			for _, r := range e.rows {
				numbers = append(numbers, r.Numbers[i])
			}
			e.numbers = append(e.numbers, Median(numbers))
		}
		all = append(all, e)
	}
	return all
}

func (s *Sweep) write() error {
	axes, err := s.Plan.Axes()
	if err != nil {
		return err
	}
	entries := s.entries()
	script, _ := s.Journal.Fact("script")
	page := Page{
		Title: filepath.Base(s.Folder), Asked: s.Journal.Asked, Charts: s.charts(axes, entries),
		When: fmt.Sprintf("%s · %s · %d of %d runs, in an order by the seed %d", script, s.Journal.Started.UTC().Format("2006-01-02 15:04:05 UTC"),
			len(s.rows), s.Plan.Repeat*len(entries), s.Plan.Seed),
	}
	if page.Remarks = s.drift(entries); len(page.Remarks) > 0 {
		page.Verdict, page.Class = "Drift was seen: runs of the same settings gave other numbers as time went by", "invalid"
	}
	meanings := map[string]bool{}
	for _, r := range s.rows {
		if r.Error == "" {
			meanings[r.Meaning] = true
		}
	}
	if len(meanings) > 1 {
		page.Remarks = append(page.Remarks, "Confirmations do not prove the same in all runs: compare only rows that prove the same.")
	}
	page.Tables = append(page.Tables, s.table(axes, entries), CellsTable(s.Columns, s.rows, []string{"repetition", "settings"}, func(i int) []Text {
		return []Text{{Text: fmt.Sprint(s.rows[i].Cell.Repetition)}, {Text: s.rows[i].Cell.Settings.String()}}
	}))
	if err := page.Write(s.Folder); err != nil {
		return err
	}
	heads := []string{"repetition"}
	for _, setting := range s.Plan.Settings {
		heads = append(heads, setting.Name)
	}
	return WriteCSV(s.Folder, s.Columns, s.rows, heads, func(i int) []string {
		line := []string{fmt.Sprint(s.rows[i].Cell.Repetition)}
		for _, setting := range s.Plan.Settings {
			line = append(line, s.rows[i].Cell.Settings.Of(setting.Name))
		}
		return line
	})
}

// table returns the table of all combinations.
func (s *Sweep) table(axes []Axis, entries []entry) Table {
	t := Table{Title: "Every combination"}
	for _, a := range axes {
		t.Heads = append(t.Heads, a.Names...)
	}
	places := known(s.Columns, s.rows)
	for _, c := range places {
		t.Heads = append(t.Heads, s.Columns[c].Label())
	}
	t.Heads = append(t.Heads, "valid", "confirmed means")
	for _, e := range entries {
		var line []Text
		for _, v := range e.settings {
			line = append(line, Text{Text: v.Shown()})
		}
		for _, c := range places {
			line = append(line, e.numbers[c].Show(s.Columns[c]))
		}
		valid := 0
		var meanings []string
		for _, r := range e.rows {
			if r.Valid {
				valid++
			}
			if !slices.Contains(meanings, r.Meaning) {
				meanings = append(meanings, r.Meaning)
			}
		}
		runs := Text{Text: fmt.Sprintf("%d of %d", valid, len(e.rows)), Doubted: valid < len(e.rows)}
		t.Rows = append(t.Rows, append(line, runs, Text{Text: strings.Join(meanings, "; ")}))
	}
	return t
}

// charts draws each column over the axis with the most points that leaves few enough lines.
func (s *Sweep) charts(axes []Axis, entries []entry) (all []report.Chart) {
	best := -1
	for i, a := range axes {
		lines := len(entries) / len(a.Points)
		if len(a.Points) > 1 && lines <= report.Palette && (best < 0 || len(a.Points) > len(axes[best].Points)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	over := axes[best]
	others := combine(slices.Delete(slices.Clone(axes), best, best+1))
	var ticks, lines []string
	for _, p := range over.Points {
		var parts []string
		for _, v := range p {
			parts = append(parts, v.Shown())
		}
		ticks = append(ticks, strings.Join(parts, " · "))
	}
	for _, o := range others {
		lines = append(lines, o.String())
	}
	for _, c := range known(s.Columns, s.rows) {
		chart, ok := Chart(fmt.Sprintf("column%d", c+1), s.Columns[c], over.Label(), ticks, lines, func(line, tick int) Number {
			i := slices.IndexFunc(entries, func(e entry) bool {
				return !slices.ContainsFunc(slices.Concat(over.Points[tick], others[line]), func(v Value) bool { return !slices.Contains(e.settings, v) })
			})
			return entries[i].numbers[c]
		})
		if ok && s.Columns[c].Unit != "" {
			all = append(all, chart)
		}
	}
	return all
}

// drift tests whether runs of the same settings gave other numbers as time went by: each number is divided by the median of
// its settings.
func (s *Sweep) drift(entries []entry) (findings []string) {
	const level = 0.01
	for i, c := range s.Columns {
		var shares []float64
		for _, r := range s.rows {
			k := slices.IndexFunc(entries, func(e entry) bool { return slices.Equal(e.settings, r.Cell.Settings) })
			if n := r.Numbers[i]; c.Unit != "" && n.Known && n.Value > 0 && len(entries[k].rows) > 1 {
				shares = append(shares, n.Value/entries[k].numbers[i].Value)
			}
		}
		if t, ok := stationary.Test(shares, level/float64(len(s.Columns))); ok {
			way := "grew"
			if t.By < 0 {
				way = "fell"
			}
			findings = append(findings, fmt.Sprintf("%s %s by %.0f %% over the study (%s)", c.Label(), way, 100*math.Abs(t.By), t))
		}
	}
	return findings
}
