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

	"github.com/gofrs/flock"
)

// ErrStopped is the error of a study that was stopped before its last cell.
var ErrStopped = errors.New("the study was stopped: --resume continues it")

// Study runs cells one after the other.
type Study struct {
	Folder string // "" takes results/<name>-<time>
	Resume bool
	Args   []string      // for k6 run
	Reset  string        // a shell command before each cell, with its settings in the environment
	Pause  time.Duration // after Reset
	Out    io.Writer
	Stop   <-chan struct{} // no cell begins after it is closed
	Asked  Facts           // set by Open

	Run    func(context.Context, Cell) (Outcome, error) // a test's, in the place of k6
	ended  []Outcome                                    // in the journal
	locked *flock.Flock
}

// Base returns the name of a file without its folder and extension.
func Base(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// Open begins a study in a new folder, or resumes the study in it. The folder is locked until
// Close.
func (s *Study) Open(name string, facts Facts) error {
	for _, arg := range s.Args {
		if strings.HasPrefix(arg, "--env") || strings.HasPrefix(arg, "-e") {
			return fmt.Errorf("%s after --: set the variable with --set, or in the environment of this command", arg)
		}
	}
	if s.Folder == "" {
		s.Folder = filepath.Join("results", name+"-"+time.Now().UTC().Format("20060102T150405Z"))
	}
	if s.Run == nil {
		s.Run = s.run
	}
	facts["arguments for k6"] = Shown(strings.Join(s.Args, " "))
	facts["--reset"] = Shown(s.Reset)
	facts["--pause"] = s.Pause.String()
	if err := s.lock(); err != nil {
		return err
	}
	s.Asked = facts
	if !s.Resume {
		return s.writeJournal()
	}
	if err := s.readJournal(); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// inTime returns the runs in the order of time.
func inTime(runs []Outcome) []Outcome {
	slices.SortStableFunc(runs, func(a, b Outcome) int { return a.Started.Compare(b.Started) })
	return runs
}

// Each runs the cells that have no result yet. After is called with all runs, at first and after
// each.
func (s *Study) Each(ctx context.Context, all []Cell, after func([]Outcome) error) error {
	var runs []Outcome
	var left []Cell
	for _, c := range all {
		if o, ok := s.done(c); ok {
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
		c.Label = fmt.Sprintf("[%d/%d] %s", i+1, len(left), c.Label)
		o, err := s.Cell(ctx, c)
		if err != nil {
			return err
		}
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

// Cell returns the outcome of a cell: from the journal, or by running it.
func (s *Study) Cell(ctx context.Context, c Cell) (Outcome, error) {
	if o, ok := s.done(c); ok {
		return o, nil
	}
	select {
	case <-s.Stop:
		return Outcome{}, ErrStopped
	default:
	}
	s.Say("\n%s", c.Label)
	o, err := s.Run(ctx, c)
	if err != nil {
		return o, err
	}
	s.Say("  %s", o.Summary())
	return o, s.add(o)
}

// Say prints a line.
func (s *Study) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...) // a closed terminal does not end a study
}
