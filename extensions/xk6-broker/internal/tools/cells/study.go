package cells

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrStopped is the error of a study that was stopped before its last cell.
var ErrStopped = errors.New("the study was stopped: --resume continues it")

// Study runs cells one after the other.
type Study struct {
	Folder string // "" takes results/<name>-<time>
	Resume bool
	Args   []string // for k6 run
	Reset  string   // a shell command before each cell, with its settings in the environment
	Out    io.Writer
	Stop   <-chan struct{} // no cell begins after it is closed
	Asked  Facts           // set by Open

	Run   func(context.Context, Cell) (Outcome, error) // a test's, in the place of k6
	ended []Outcome                                    // in the journal
}

// Base returns the name of a file without its folder and extension.
func Base(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// Open begins a study in a new folder, or resumes the study in it.
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
	if s.Resume {
		if err := s.readJournal(facts); err != nil {
			return err
		}
	} else if _, err := os.Lstat(s.Folder); err == nil {
		return fmt.Errorf("%s exists already: choose another --out, or continue its study with --resume", s.Folder)
	}
	//gosec:disable G301 -- as the user's umask has it
	if err := os.MkdirAll(s.Folder, 0o777); err != nil {
		return err
	}
	s.Asked = facts
	return s.writeJournal()
}

// Cell returns the outcome of a cell: from the journal, or by running it.
func (s *Study) Cell(ctx context.Context, c Cell) (Outcome, error) {
	if o, ok := s.Done(c); ok {
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
