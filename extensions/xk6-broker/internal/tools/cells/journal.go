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
	"time"

	"github.com/gofrs/flock"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// JournalFile has a line of JSON for the study, and one for each cell that ended.
const JournalFile = "study.jsonl"

// Facts are what a study was asked for, without secrets. A study resumes only with the same facts.
type Facts map[string]string

// Journal keeps the outcomes of the cells. It is rewritten after each cell.
type Journal struct {
	folder  string
	asked   Facts
	entries []entry // in the order in which the cells ended
	lock    *flock.Flock
}

type entry struct {
	Cell     string    `json:"cell"` // its folder
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	ExitCode int       `json:"exitCode"`
	Error    string    `json:"error,omitempty"`
}

// Open begins a study in a new folder, or resumes the study in it. The folder is locked until Close.
func Open(folder string, asked Facts, resume bool) (*Journal, error) {
	j := &Journal{folder: folder, asked: asked, lock: flock.New(filepath.Join(folder, ".lock"))}
	_, err := os.Lstat(folder)
	if !resume && err == nil {
		return nil, fmt.Errorf("%s exists already: choose another --out, or continue its study with --resume", folder)
	}
	if resume {
		if _, err := os.Stat(j.path()); err != nil {
			return nil, fmt.Errorf("there is no study in %s: %w", folder, err)
		}
	}
	if err := os.MkdirAll(folder, 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
		return nil, err
	}
	if locked, err := j.lock.TryLock(); err != nil || !locked {
		return nil, errors.Join(err, fmt.Errorf("another process is at work on the study in %s", folder))
	}
	if resume {
		err = j.read()
	} else {
		err = j.write()
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

func (j *Journal) path() string { return filepath.Join(j.folder, JournalFile) }

// Close unlocks the study.
func (j *Journal) Close() error { return j.lock.Close() }

func (j *Journal) read() error {
	file, err := os.Open(j.path())
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	in := json.NewDecoder(file)
	var before Facts
	if err = in.Decode(&before); err == nil {
		err = before.same(j.asked)
	}
	for err == nil {
		var e entry
		if err = in.Decode(&e); err == nil {
			j.entries = append(j.entries, e)
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", j.path(), err)
	}
	return nil
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

// Add adds the outcome of a cell.
func (j *Journal) Add(o Outcome) error {
	j.entries = slices.DeleteFunc(j.entries, func(e entry) bool { return e.Cell == o.Folder })
	j.entries = append(j.entries, entry{o.Folder, o.Started, o.Ended, o.ExitCode, o.Error})
	return j.write()
}

// Outcome returns the outcome of a cell with its result; false if it must be run.
func (j *Journal) Outcome(c Cell) (Outcome, bool) {
	i := slices.IndexFunc(j.entries, func(e entry) bool { return e.Cell == c.Folder && e.Error == "" })
	if i < 0 {
		return Outcome{}, false
	}
	e := j.entries[i]
	found, err := report.Read(filepath.Join(j.folder, Folder, c.Folder))
	if err != nil {
		return Outcome{}, false
	}
	return Outcome{Cell: c, Result: found, ExitCode: e.ExitCode, Started: e.Started, Ended: e.Ended}, true
}

func (j *Journal) write() error {
	return report.WriteAtomic(j.path(), func(w io.Writer) error {
		out := json.NewEncoder(w)
		err := out.Encode(j.asked)
		for _, e := range j.entries {
			err = errors.Join(err, out.Encode(e))
		}
		return err
	})
}
