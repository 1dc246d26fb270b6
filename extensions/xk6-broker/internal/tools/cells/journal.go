package cells

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// JournalFile has a line of JSON for the study, and one for each cell that ended. It is rewritten
// after each.
const JournalFile = "study.jsonl"

// Facts are what a study was asked for, without secrets. A study resumes only with the same facts.
type Facts map[string]string

// journal returns the path of the journal.
func (s *Study) journal() string { return filepath.Join(s.Folder, JournalFile) }

func (s *Study) readJournal(asked Facts) error {
	file, err := os.Open(s.journal())
	if err != nil {
		return fmt.Errorf("there is no study in %s: %w", s.Folder, err)
	}
	defer file.Close() //nolint:errcheck // only read
	in := json.NewDecoder(file)
	var before Facts
	if err = in.Decode(&before); err == nil {
		err = before.same(asked)
	}
	for err == nil {
		var o Outcome
		if err = in.Decode(&o); err == nil {
			s.ended = append(s.ended, o)
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", s.journal(), err)
	}
	return nil
}

func (s *Study) writeJournal() error {
	return report.WriteAtomic(s.journal(), func(w io.Writer) error {
		out := json.NewEncoder(w)
		err := out.Encode(s.Asked)
		for _, o := range s.ended {
			err = errors.Join(err, out.Encode(o))
		}
		return err
	})
}

// same returns an error with the facts that differ.
func (f Facts) same(now Facts) error {
	all := maps.Clone(now)
	maps.Copy(all, f)
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if f[name] != now[name] {
			changes = append(changes, fmt.Sprintf("%s was %q and is %q", name, f[name], now[name]))
		}
	}
	if len(changes) > 0 {
		return fmt.Errorf("another study cannot be resumed: %s", strings.Join(changes, "; "))
	}
	return nil
}

// add adds the outcome of a cell to the journal.
func (s *Study) add(o Outcome) error {
	s.ended = slices.DeleteFunc(s.ended, func(before Outcome) bool { return before.Folder == o.Folder })
	s.ended = append(s.ended, o)
	return s.writeJournal()
}

// Done returns the outcome of a cell that has a result; false if it must be run.
func (s *Study) Done(c Cell) (Outcome, bool) {
	for _, o := range s.ended {
		if o.Folder == c.Folder && o.Error == "" {
			var err error
			o.Cell = c
			o.Result, err = report.Read(s.path(c))
			return o, err == nil
		}
	}
	return Outcome{}, false
}
