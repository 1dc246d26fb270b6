package cells

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrStopped is the error of a study that was stopped before its last cell.
var ErrStopped = errors.New("the study was stopped: --resume continues it")

// Study runs cells one after the other. The zero Asked, Journal and Run are filled in.
type Study struct {
	Runner  Runner
	Folder  string // "" takes results/<name>-<time>
	Resume  bool
	Out     io.Writer
	Stop    <-chan struct{} // no cell begins after it is closed
	Asked   Facts
	Journal *Journal
	Run     func(context.Context, Cell) (Outcome, error) // [Runner.Run] if it is nil
}

// Base returns the name of a file without its folder and extension.
func Base(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// Open begins or resumes a study with a name and facts.
func (s *Study) Open(name string, facts Facts) (err error) {
	if s.Folder == "" {
		s.Folder = filepath.Join("results", name+"-"+time.Now().UTC().Format("20060102T150405Z"))
	}
	s.Runner.Folder = filepath.Join(s.Folder, Folder)
	if s.Run == nil {
		s.Run = s.Runner.Run
	}
	for _, arg := range s.Runner.Args {
		if strings.HasPrefix(arg, "--env") || strings.HasPrefix(arg, "-e") {
			return fmt.Errorf("%s after --: set the variable with --set, or in the environment of this command", arg)
		}
	}
	facts["arguments for k6"] = Shown(strings.Join(s.Runner.Args, " "))
	facts["--reset"] = Shown(s.Runner.Reset)
	facts["--pause"] = s.Runner.Pause.String()
	s.Asked = facts
	s.Journal, err = Open(s.Folder, s.Asked, s.Resume)
	return err
}

// inTime returns the runs in the order of time.
func inTime(runs []Outcome) []Outcome {
	slices.SortStableFunc(runs, func(a, b Outcome) int { return a.Started.Compare(b.Started) })
	return runs
}

// Each runs the cells that have no result yet. After is called with all runs, at first and after each.
func (s *Study) Each(ctx context.Context, all []Cell, after func([]Outcome) error) error {
	var runs []Outcome
	var left []Cell
	for _, c := range all {
		if o, done := s.Journal.Outcome(c); done {
			runs = append(runs, o)
		} else {
			left = append(left, c)
		}
	}
	s.Say("%d cells, %d are done", len(all), len(runs))
	runs = inTime(runs)
	if err := after(runs); err != nil {
		return err
	}
	failed := 0
	for i, c := range left {
		if s.stopped() {
			return ErrStopped
		}
		s.Say("\n[%d/%d] %s", i+1, len(left), c.Label)
		o, err := s.Cell(ctx, c)
		if err != nil {
			return err
		}
		s.Say("  %s", o.Summary())
		if o.Result == nil {
			failed++
		}
		runs = inTime(append(runs, o))
		if err := after(runs); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("cells without a result: %d; --resume runs them again", failed)
	}
	return nil
}

func (s *Study) stopped() bool {
	select {
	case <-s.Stop:
		return true
	default:
		return false
	}
}

// Cell runs a cell and keeps its outcome.
func (s *Study) Cell(ctx context.Context, c Cell) (Outcome, error) {
	if s.stopped() {
		return Outcome{}, ErrStopped
	}
	o, err := s.Run(ctx, c)
	if err != nil {
		return o, err
	}
	return o, s.Journal.Add(o)
}

// Say writes a line for the user.
func (s *Study) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...) // a closed terminal does not end a study
}
