package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// The files of a study's folder.
const (
	JournalFile = "study.json"
	CellsFolder = "cells"
	TableFile   = "cells.csv"
	PageFile    = "index.html"
	lockFile    = ".lock"
)

// Fact is a part of what a study was asked for, without secrets. A study resumes only if all facts are the same.
type Fact struct {
	What string `json:"what"`
	Is   string `json:"is"`
}

// SeedFact is the seed of the order.
const SeedFact = "--seed"

// Record is an entry of the journal.
type Record struct {
	Index      int       `json:"index"`
	Repetition int       `json:"repetition"`
	Settings   Values    `json:"settings"`
	Folder     string    `json:"folder"`
	Started    time.Time `json:"started"`
	Ended      time.Time `json:"ended"`
	ExitCode   int       `json:"exitCode"`
	Error      string    `json:"error,omitempty"` // why there is no result
}

// Journal is written after each cell, so that an interrupted study can resume.
type Journal struct {
	Version int       `json:"version"`
	Started time.Time `json:"started"`
	Asked   []Fact    `json:"asked"`
	Cells   []Record  `json:"cells"` // the last run of each, in the order in which they ended

	folder string
	lock   *flock.Flock
}

const journalVersion = 1

// Free returns an error if a folder exists.
func Free(folder string) error {
	if _, err := os.Lstat(folder); err == nil {
		return fmt.Errorf("%s exists already: choose another folder with --out, or pass --resume to go on with the study in it", folder)
	}
	return nil
}

// Open begins a study in a new folder, or resumes the one that is there.
func Open(folder string, asked []Fact, resume bool) (*Journal, error) {
	if resume {
		return Resume(folder, asked)
	}
	return Begin(folder, asked)
}

// Begin makes the folder of a study and its journal.
func Begin(folder string, asked []Fact) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(folder), 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
		return nil, fmt.Errorf("study: %w", err)
	}
	if err := Free(folder); err != nil {
		return nil, err
	}
	err := os.Mkdir(folder, 0o777) //gosec:disable G301 -- as above
	if err != nil {
		return nil, fmt.Errorf("study: %w", err)
	}
	j := &Journal{Version: journalVersion, Started: time.Now(), Asked: asked, Cells: []Record{}, folder: folder}
	if j.lock, err = hold(folder); err != nil {
		return nil, err
	}
	return j, j.write()
}

// hold locks a study's folder. The system unlocks it when the process ends.
func hold(folder string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(folder, lockFile))
	got, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("study: %w", err)
	}
	if !got {
		return nil, fmt.Errorf("another process is at work on the study in %s: wait until it ends", folder)
	}
	return lock, nil
}

// Close unlocks the study.
func (j *Journal) Close() error {
	if err := j.lock.Close(); err != nil {
		return fmt.Errorf("study: %w", err)
	}
	return nil
}

// Read reads the journal of a folder.
func Read(folder string) (*Journal, error) {
	text, err := os.ReadFile(filepath.Join(folder, JournalFile)) //gosec:disable G304 -- a file of the user's
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no study in %s to go on with: it has no %s", folder, JournalFile)
	}
	if err != nil {
		return nil, fmt.Errorf("study: %w", err)
	}
	j := &Journal{folder: folder}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("%s: a damaged journal: %w", filepath.Join(folder, JournalFile), err)
	}
	if j.Version != journalVersion {
		return nil, fmt.Errorf("%s: a journal of version %d: this program reads version %d", filepath.Join(folder, JournalFile), j.Version, journalVersion)
	}
	return j, nil
}

// Resume reads the journal of a folder. It returns an error if the study was asked for otherwise.
func Resume(folder string, asked []Fact) (*Journal, error) {
	if _, err := Read(folder); err != nil { // a folder of something else gets no lock
		return nil, err
	}
	lock, err := hold(folder)
	if err != nil {
		return nil, err
	}
	j, err := Read(folder)
	if err == nil {
		err = j.same(asked)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	j.lock = lock
	return j, nil
}

// same returns an error that names the facts that differ.
func (j *Journal) same(asked []Fact) error {
	var different []string
	for _, f := range asked {
		if was, _ := j.Fact(f.What); was != f.Is {
			different = append(different, fmt.Sprintf("%s: it was %s, and is %s", f.What, orNothing(was), orNothing(f.Is)))
		}
	}
	for _, f := range j.Asked {
		if f.Is != "" && !slices.ContainsFunc(asked, func(a Fact) bool { return a.What == f.What }) {
			different = append(different, fmt.Sprintf("%s: it was %s, and is not given", f.What, orNothing(f.Is)))
		}
	}
	if len(different) > 0 {
		return fmt.Errorf("the study in %s is another one, so that it cannot be gone on with: %s", j.folder, strings.Join(different, "; "))
	}
	return nil
}

// Fact returns a fact of the study.
func (j *Journal) Fact(what string) (string, bool) {
	i := slices.IndexFunc(j.Asked, func(f Fact) bool { return f.What == what })
	if i < 0 {
		return "", false
	}
	return j.Asked[i].Is, true
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// Add adds the outcome of a cell. One that was cut short is not added: it is run again.
func (j *Journal) Add(o Outcome) error {
	if o.Cut {
		return nil
	}
	settings := slices.Clone(o.Cell.Settings)
	for i, v := range settings {
		settings[i].Value = v.Shown()
	}
	j.Cells = slices.DeleteFunc(j.Cells, func(r Record) bool { return r.Index == o.Cell.Index })
	j.Cells = append(j.Cells, Record{
		Index: o.Cell.Index, Repetition: o.Cell.Repetition, Settings: settings, Folder: o.Cell.Folder,
		Started: o.Started, Ended: o.Ended, ExitCode: o.ExitCode, Error: o.Error,
	})
	return j.write()
}

// Record returns the entry of a cell.
func (j *Journal) Record(index int) (Record, bool) {
	i := slices.IndexFunc(j.Cells, func(r Record) bool { return r.Index == index })
	if i < 0 {
		return Record{}, false
	}
	return j.Cells[i], true
}

// Outcome returns the outcome of a cell, read from its folder; false if it has no result.
func (j *Journal) Outcome(c Cell) (Outcome, bool) {
	r, ok := j.Record(c.Index)
	if !ok || r.Error != "" {
		return Outcome{}, false
	}
	found, err := report.Read(filepath.Join(j.folder, CellsFolder, r.Folder))
	if err != nil { // it was removed
		return Outcome{}, false
	}
	return Outcome{Cell: c, Result: found, ExitCode: r.ExitCode, Started: r.Started, Ended: r.Ended}, true
}

func (j *Journal) write() error {
	return report.WriteAtomic(filepath.Join(j.folder, JournalFile), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(j)
	})
}
