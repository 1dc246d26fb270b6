package cells

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
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

// Prepare completes the study before anything runs.
func (s *Study) Prepare(name string) (err error) {
	if s.Resume && s.Folder == "" {
		return errors.New("--resume: name the folder of the study with --out")
	}
	if s.Runner.Pause < 0 {
		return fmt.Errorf("--pause %v: it must be 0 or more", s.Runner.Pause)
	}
	if s.Folder == "" {
		s.Folder = filepath.Join("results", name+"-"+time.Now().UTC().Format("20060102T150405Z"))
	}
	s.Runner.Folder = filepath.Join(s.Folder, Folder)
	if s.Runner.K6, err = os.Executable(); err != nil {
		return err
	}
	if s.Run == nil {
		s.Run = s.Runner.Run
	}
	for _, arg := range s.Runner.Args {
		if strings.HasPrefix(arg, "--env") || strings.HasPrefix(arg, "-e") {
			return fmt.Errorf("%s after --: set the variable with --set, or in the environment of this command", arg)
		}
	}
	s.Asked = Facts{
		"arguments for k6": Shown(strings.Join(s.Runner.Args, " ")),
		"--reset":          Shown(s.Runner.Reset),
		"--pause":          s.Runner.Pause.String(),
	}
	return nil
}

// Base returns the name of a file without its folder and extension.
func Base(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// Open begins or resumes the study with further facts.
func (s *Study) Open(facts Facts) (err error) {
	maps.Copy(s.Asked, facts)
	s.Journal, err = Open(s.Folder, s.Asked, s.Resume)
	return err
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
		runs = append(runs, o)
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
