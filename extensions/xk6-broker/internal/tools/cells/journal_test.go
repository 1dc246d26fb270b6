package cells

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// An existing folder is not overwritten, and another study is not resumed: the error names the differences.
func TestOpen_FolderExists_Refused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "study")
	open := func(folder string, resume bool, set string, others ...string) (*Study, error) {
		facts := Facts{"--set": set}
		for _, name := range others {
			facts[name] = "5"
		}
		s := &Study{Folder: folder, Resume: resume}
		return s, s.Open("x", facts)
	}
	fails := func(want, folder string, resume bool, set string, others ...string) {
		t.Helper()
		if _, err := open(folder, resume, set, others...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err := open(folder, false, "1, 2", "--zip")
	if err != nil {
		t.Fatal(err)
	}
	fails("exists already", folder, false, "1, 2", "--zip")
	if _, err := open(folder, true, "1, 2", "--zip"); err != nil {
		t.Fatal(err)
	}
	fails(`--set was "1, 2" and is "1, 3"; --zip was "5" and is ""; SIZE was "" and is "5"`, folder, true, "1, 3", "SIZE")
	fails("there is no study", filepath.Dir(folder), true, "1, 2")
	if err := os.WriteFile(filepath.Join(folder, JournalFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails("unexpected EOF", folder, true, "1, 2")
}

// bench runs cells without a process, and leaves their results as a runner does.
type bench struct {
	t      *testing.T
	folder string
	ran    []string
	change func(c Cell, o *Outcome) error
	now    time.Time
}

func (b *bench) run(_ context.Context, c Cell) (Outcome, error) {
	b.ran = append(b.ran, c.Folder)
	b.now = b.now.Add(time.Minute)
	o := Outcome{Cell: c, Started: b.now, Result: measured(1000, 1e6)}
	err := b.change(c, &o)
	if o.Result != nil {
		f := report.Folder{Dir: filepath.Join(b.folder, Folder), Name: c.Folder, Overwrite: true}
		if err := f.Write(o.Result, nil); err != nil {
			b.t.Error(err)
		}
	}
	return o, err
}

// each runs cells a, b and c of a study, and returns its output and its runs.
func (b *bench) each(stop chan struct{}, resume bool) (out string, runs []Outcome, err error) {
	b.t.Helper()
	var text strings.Builder
	s := Study{Folder: b.folder, Run: b.run, Stop: stop, Out: &text, Resume: resume}
	if err = s.Open("x", Facts{"script": "a.js"}); err != nil {
		b.t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		o, err := s.Cell(b.t.Context(), Cell{Folder: name})
		if err != nil {
			return text.String(), runs, err
		}
		runs = append(runs, o)
	}
	return text.String(), runs, nil
}

// A stopped study continues with the cells that have no result: the failed, the cut, the removed and the rest.
func TestCell_Stopped_Resumes(t *testing.T) {
	b := &bench{t: t, folder: filepath.Join(t.TempDir(), "study"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	stop := make(chan struct{})
	b.change = func(c Cell, o *Outcome) error {
		switch c.Folder {
		case "a":
			o.Result, o.Error = nil, "the broker was away"
		case "b":
			close(stop)
		}
		return nil
	}
	if out, runs, err := b.each(stop, false); !errors.Is(err, ErrStopped) || len(runs) != 2 || !strings.Contains(out, "FAILED: the broker was away") {
		t.Error(out, runs, err)
	}
	b.change = func(c Cell, o *Outcome) error {
		if c.Folder == "c" {
			o.Result = nil
			return ErrStopped
		}
		return nil
	}
	if out, runs, err := b.each(nil, true); !errors.Is(err, ErrStopped) || len(runs) != 2 {
		t.Error(out, runs, err)
	}
	b.change = func(Cell, *Outcome) error { return nil }
	if err := os.RemoveAll(filepath.Join(b.folder, Folder, "b")); err != nil {
		t.Fatal(err)
	}
	if _, runs, err := b.each(nil, true); err != nil || len(runs) != 3 {
		t.Error(runs, err)
	}
	if want := []string{"a", "b", "a", "c", "b", "c"}; !slices.Equal(b.ran, want) {
		t.Errorf("ran %v, want %v", b.ran, want)
	}
}
