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

// Save writes results that must not be lost: if the folder is taken, to the next free name; if it
// cannot be written, to a temporary directory, with an error. The folder is empty if none was written.
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

// Write writes a result. All files appear at once, also if they replace results; other files of the
// folder stay. Files that cannot be written are left out, with ErrIncomplete; the summary must be.
func (f Folder) Write(r *result.Result, ledger *account.Ledger) error {
	if err := f.Check(); err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(f.Path()); err == nil {
		f.Dir, f.Name = filepath.Dir(target), filepath.Base(target)
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
	if err := errors.Join(os.Chmod(draft, 0o755), f.publish(draft)); err != nil { //gosec:disable G302 -- results are public
		return fmt.Errorf("report: %w", err)
	}
	if missing != nil {
		return fmt.Errorf("report: %s: %w, there are missing\n%w", f.Path(), ErrIncomplete, missing)
	}
	return nil
}

// attempts bounds how often a folder is replaced that other processes replace at this moment.
const attempts = 100

// publish gives a draft the folder's name. Results of that name are moved aside as a whole, so runs
// that overwrite one folder at once are never mixed: the last one has it.
func (f Folder) publish(draft string) error {
	var aside []string
	defer func() {
		for _, old := range aside {
			f.keepOthers(old)
		}
	}()
	for range attempts {
		if os.Rename(draft, f.Path()) == nil {
			return nil
		}
		if err := f.Check(); err != nil {
			return err
		}
		old := fmt.Sprintf("%s-old%d", draft, len(aside))
		if os.Rename(f.Path(), old) == nil {
			aside = append(aside, old)
		}
	}
	return os.Rename(draft, f.Path())
}

// keepOthers moves files that no run has written from old results back into the folder, and removes
// the old results. Without new results it restores the old ones.
func (f Folder) keepOthers(old string) {
	for range attempts {
		if os.Rename(old, f.Path()) == nil {
			return
		}
		entries, err := os.ReadDir(old)
		for _, e := range entries {
			if !isResult(e.Name()) {
				err = errors.Join(err, os.Rename(filepath.Join(old, e.Name()), filepath.Join(f.Path(), e.Name())))
			}
		}
		if err == nil {
			_ = os.RemoveAll(old)
			return
		}
	}
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
