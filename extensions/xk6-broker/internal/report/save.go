package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Save writes results that must not be lost: to the next free name if the folder is taken, and to a
// temporary directory, with an error, if it cannot be written. Without any the folder is empty.
func (f Folder) Save(r *result.Result, ledger *account.Ledger) (Folder, error) {
	write := func(f Folder) error {
		named := *r
		named.Name = f.Name
		return f.Write(&named, ledger)
	}
	asked, err := f, write(f)
	for errors.Is(err, ErrExists) { // another run may take the free name first
		f = asked.Free()
		err = write(f)
	}
	if err == nil || errors.Is(err, ErrIncomplete) {
		return f, err
	}
	dir, failed := os.MkdirTemp("", "results-*")
	elsewhere := Folder{Dir: dir, Name: f.Name}
	if failed == nil {
		failed = write(elsewhere)
	}
	if failed != nil && !errors.Is(failed, ErrIncomplete) {
		_ = os.Remove(dir)
		return Folder{}, errors.Join(err, failed)
	}
	return elsewhere, fmt.Errorf("%w\nthe results are in %s instead", errors.Join(err, failed), elsewhere.Path())
}

// ErrIncomplete is the error of results with files that could not be written.
var ErrIncomplete = errors.New("the results are not complete")

// Write writes a result; all files appear at once. Files that cannot be written are left out, with
// ErrIncomplete. Without its summary nothing is written.
func (f Folder) Write(r *result.Result, ledger *account.Ledger) error {
	if err := f.Check(); err != nil {
		return err
	}
	if err := os.MkdirAll(f.Dir, 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
		return fmt.Errorf("report: %w", err)
	}
	draft, err := os.MkdirTemp(f.Dir, "."+f.Name+"-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer func() { _ = os.RemoveAll(draft) }() // it is published, or has failed
	var missing error
	for _, file := range filesOf(r, ledger) {
		err := writeFile(filepath.Join(draft, file.name), file.write)
		if err != nil && file.name == SummaryFile {
			return fmt.Errorf("report: %w", err)
		}
		if err != nil {
			_ = os.Remove(filepath.Join(draft, file.name))
			missing = errors.Join(missing, err)
		}
	}
	_ = os.Chmod(draft, 0o755) //gosec:disable G302 -- results are public
	if err := f.publish(draft); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if missing != nil {
		return fmt.Errorf("report: %s: %w, there are missing\n%w", f.Path(), ErrIncomplete, missing)
	}
	return nil
}

// publish gives a draft the folder's name. Old results are moved away first: a folder is replaced
// as a whole, so results of two runs are never mixed.
func (f Folder) publish(draft string) error {
	old := draft + "-old"
	for range 100 { // another run may publish at this moment
		if os.Rename(draft, f.Path()) == nil {
			return nil
		}
		if err := f.Check(); err != nil {
			return err
		}
		if os.Rename(f.Path(), old) == nil {
			_ = os.RemoveAll(old) // a hidden folder may stay
		}
	}
	return os.Rename(draft, f.Path())
}

// file is a file of a folder.
type file struct {
	name  string
	write func(io.Writer) error
}

// filesOf lists the files of a folder, the most important first: there may not be room for all. A
// result of several processes has no recording: those are in the folders of the processes.
func filesOf(r *result.Result, ledger *account.Ledger) []file {
	all := []file{
		{SummaryFile, func(w io.Writer) error { return WriteSummary(w, r) }},
		{PageFile, func(w io.Writer) error { return HTML(w, r) }},
	}
	if ledger != nil {
		all = append(all, file{LedgerFile, ledger.Write})
	}
	if r.Recording != nil && !r.Several() {
		all = append(all, file{RecordingFile, r.Recording.Write})
	}
	var logs []file
	names := fileNames(r)
	for i := range r.Topics {
		t := &r.Topics[i]
		for trend := range recording.Trend(recording.NumTrends) {
			name := names[i] + "." + trend.String()
			for _, loop := range []recording.Loop{recording.Open, recording.Closed} {
				if h := t.Trends[trend.In(loop)]; h != nil {
					write := func(w io.Writer) error { return h.WriteHGRM(w, time.Millisecond) }
					all = append(all, file{names[i] + "." + trend.In(loop) + hgrm, write})
				}
			}
			if r.Recording != nil && (t.Trends[trend.String()] != nil || t.Trends[trend.In(recording.Closed)] != nil) {
				logs = append(logs, file{name + hlog, func(w io.Writer) error { return r.WriteLog(w, t, trend) }})
			}
		}
	}
	return append(all, logs...)
}
