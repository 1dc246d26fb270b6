package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// Sweep runs every cell of a plan.
type Sweep struct {
	Plan    Plan
	Columns []measure.Measure
	Named   bool // somebody asked for these columns: what is not known of them is said
	Folder  string
	Journal *Journal
	Run     func(context.Context, Cell) (Outcome, error) // [Runner.Run]
	Out     io.Writer

	rows []Row
	now  func() time.Time
}

// ErrStopped is the error of a study that was stopped before its last cell.
var ErrStopped = errors.New("the study was stopped: --resume goes on with it")

// Do runs the cells that the journal has no result of. When stop is closed, it ends after the running cell, and when ctx ends, with it. Page and table are
// written after each cell. The number of cells without a result is what failed.
func (s *Sweep) Do(ctx context.Context, stop <-chan struct{}) (failed int, err error) {
	if s.now == nil {
		s.now = time.Now
	}
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
	s.say("%s × %s = %s, in an order by the seed %d", plural(len(cells)/s.Plan.Repeat, "combination"), plural(s.Plan.Repeat, "repetition"), plural(len(cells), "cell"), s.Plan.Seed)
	if n := len(s.rows); n > 0 {
		s.say("%d of them are done", n)
	}
	if err := s.write(); err != nil {
		return 0, err
	}
	for i, c := range left {
		select {
		case <-stop:
			return s.failed(), ErrStopped
		default:
		}
		s.say("\n[%d/%d] repetition %d of %d: %s%s", c.Index, len(cells), c.Repetition, s.Plan.Repeat, c.Settings, s.timeLeft(left[i:]))
		o, err := s.Run(ctx, c)
		if err == nil {
			err = s.Journal.Add(o)
		}
		if err != nil {
			return s.failed(), err
		}
		if o.Cut {
			return s.failed(), ErrStopped
		}
		row := NewRow(o, s.Columns)
		s.rows = append(s.rows, row)
		s.say("  %s", s.told(row))
		if err := s.write(); err != nil {
			return s.failed(), err
		}
	}
	return s.failed(), nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// failed is how many cells have no result.
func (s *Sweep) failed() (n int) {
	for _, r := range s.rows {
		if r.Error != "" {
			n++
		}
	}
	return n
}

func (s *Sweep) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...) // a terminal that is gone is no reason to end
}

// told is a cell in one line.
func (s *Sweep) told(r Row) string {
	if r.Error != "" {
		return "FAILED: " + r.Error
	}
	var parts []string
	for i, c := range s.Columns {
		if n := r.Numbers[i]; n.Known {
			parts = append(parts, fmt.Sprintf("%s %s%s", c.Label(), c.Show(n.Value), n.sign()))
		} else if s.Named {
			parts = append(parts, fmt.Sprintf("%s – (%s)", c.Label(), n.Why))
		}
	}
	parts = append(parts, r.Verdict)
	if !r.Valid && r.Reasons != "" {
		parts[len(parts)-1] += " (" + r.Reasons + ")"
	}
	if r.Others != "" {
		parts = append(parts, r.Others)
	}
	if r.ExitCode != 0 {
		parts = append(parts, fmt.Sprintf("exit code %d", r.ExitCode))
	}
	return strings.Join(parts, ", ")
}

// sign marks what should not be relied on.
func (n Number) sign() string {
	if n.Doubt != "" {
		return "?"
	}
	return ""
}

// timeLeft is how long the cells that are left will take, each as long as those of its settings did or, where there was none, as all did.
func (s *Sweep) timeLeft(left []Cell) string {
	took := map[string][]time.Duration{}
	const all = ""
	for _, r := range s.rows {
		for _, of := range []string{r.Cell.Settings.String(), all} {
			took[of] = append(took[of], r.Ended.Sub(r.Started))
		}
	}
	if len(took) == 0 {
		return ""
	}
	total := time.Duration(0)
	for _, c := range left {
		of := took[c.Settings.String()]
		if len(of) == 0 {
			of = took[all]
		}
		sum := time.Duration(0)
		for _, d := range of {
			sum += d
		}
		total += sum / time.Duration(len(of))
	}
	unit := time.Second
	if total > time.Hour {
		unit = time.Minute
	}
	return fmt.Sprintf(" · about %v left, until %s", total.Round(unit), s.now().Add(total).Format("15:04"))
}

// script is the name of the script's file.
func (s *Sweep) script() string {
	name, _ := s.Journal.Fact("script")
	return name
}

// write writes table and page.
func (s *Sweep) write() error {
	found := Findings{Name: filepath.Base(s.Folder), Script: s.script(), Started: s.Journal.Started, Asked: s.Journal.Asked, Plan: s.Plan, Columns: s.Columns, Named: s.Named, Rows: s.rows}
	err := report.WriteAtomic(filepath.Join(s.Folder, PageFile), found.WriteHTML)
	if err != nil {
		return err
	}
	return report.WriteAtomic(filepath.Join(s.Folder, TableFile), func(w io.Writer) error { return WriteCSV(w, s.Plan, s.Columns, s.rows) })
}
