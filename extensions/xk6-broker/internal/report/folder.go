package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// The files of a results folder that have fixed names. The distributions are beside them, <topic>.<trend>.hgrm and .hlog.
const (
	SummaryFile   = "summary.json"
	PageFile      = "report.html"
	LedgerFile    = "ledger.bin"    // which messages were confirmed and which received, for merging
	RecordingFile = "recording.bin" // what one process measured, second by second

	hgrm, hlog = ".hgrm", ".hlog"
)

// ErrExists is the error of a folder that has results in it already.
var ErrExists = errors.New("exists already")

// Folder is where the results of a run go.
type Folder struct {
	Dir       string // made where it is not
	Name      string // of the folder in Dir
	Overwrite bool   // results that are there already may be replaced
}

// Path is the folder's path.
func (f Folder) Path() string { return filepath.Join(f.Dir, f.Name) }

// Meanwhile is where the results so far of a run that goes on are, for it may be killed.
func (f Folder) Meanwhile() Folder {
	f.Name += "-meanwhile"
	return f
}

// WriteMeanwhile writes the results so far, beside the recording, each file whole at all times. The two are not replaced at one instant, so the ledger, by which parts are merged, has the
// summary that belongs to it.
func (f Folder) WriteMeanwhile(r *result.Result, ledger *account.Ledger) error {
	if err := os.MkdirAll(f.Path(), 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
		return fmt.Errorf("report: %w", err)
	}
	named := *r
	named.Name, named.Unfinished = f.Name, true
	named.Verdict = result.Verdict{Reasons: []reason.Reason{}} // it is about the recording, which is not read here
	var text bytes.Buffer
	if err := WriteSummary(&text, &named); err != nil {
		return err
	}
	if ledger != nil {
		whole := *ledger
		whole.Unfinished, whole.Summary = true, text.Bytes()
		if err := WriteAtomic(filepath.Join(f.Path(), LedgerFile), whole.Write); err != nil {
			return err
		}
	}
	return WriteAtomic(filepath.Join(f.Path(), SummaryFile), func(w io.Writer) error {
		_, err := w.Write(text.Bytes())
		return err
	})
}

// Check reports whether results can be written there: ErrExists where there are some and they shall not be replaced.
func (f Folder) Check() error {
	if f.Name == "" || f.Name != Sanitise(f.Name) {
		return fmt.Errorf("report: %q is no name for a folder: use letters, digits, '.', '_' and '-'", f.Name)
	}
	info, err := os.Stat(f.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("report: %w", err)
	case !info.IsDir():
		return fmt.Errorf("report: the file %s %w: choose another name", f.Path(), ErrExists)
	case !f.Overwrite:
		return fmt.Errorf("report: the folder %s %w: choose another name, or overwrite it (overwrite: true, BROKER_REPORT_OVERWRITE=true)",
			f.Path(), ErrExists)
	}
	for range 3 { // another run may replace it while this one looks
		if replaceable(f.Path()) {
			return nil
		}
	}
	return fmt.Errorf("report: the folder %s %w and holds no results that could be overwritten: choose another name", f.Path(), ErrExists)
}

// replaceable reports whether a folder holds results, or nothing.
func replaceable(folder string) bool {
	if _, err := os.Stat(filepath.Join(folder, SummaryFile)); err == nil {
		return true
	}
	entries, err := os.ReadDir(folder)
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0
}

// Free is the folder, or the first that is free of those whose names have a number at the end.
func (f Folder) Free() Folder {
	name := f.Name
	for n := 2; errors.Is(f.Check(), ErrExists); n++ {
		number := fmt.Sprintf("-%d", n)
		f.Name = name[:min(len(name), longestName-len(number))] + number
		f.Overwrite = false
	}
	return f
}

// Write writes a result: all files of the folder appear at once, and so do those that replace results, so that no two runs'
// are ever mixed. Other files that are in the folder stay. A ledger is written where there is one. What the disk does not take is left
// out, the summary never, and the error is an [*IncompleteError] then; after any other error the folder is as it was.
func (f Folder) Write(r *result.Result, ledger *account.Ledger) error {
	if err := f.Check(); err != nil {
		return err
	}
	if _, err := os.Readlink(f.Path()); err == nil { // what a link leads to is replaced, and not the link
		if target, err := filepath.EvalSymlinks(f.Path()); err == nil {
			f.Dir, f.Name = filepath.Dir(target), filepath.Base(target)
		}
	}
	if err := os.MkdirAll(f.Dir, 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
		return fmt.Errorf("report: %w", err)
	}
	draft, err := os.MkdirTemp(f.Dir, "."+f.Name+"-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	stays := false
	defer func() {
		if !stays {
			_ = os.RemoveAll(draft)
		}
	}()
	if err := os.Chmod(draft, 0o755); err != nil { //gosec:disable G302 -- anybody may read results
		return fmt.Errorf("report: %w", err)
	}
	incomplete := &IncompleteError{Folder: f.Path()}
	for _, file := range filesOf(r, ledger) {
		path := filepath.Join(draft, file.name)
		err := writeFile(path, file.write)
		switch {
		case err == nil:
		case file.name == SummaryFile:
			return fmt.Errorf("report: %w", err)
		default:
			_ = os.Remove(path)
			incomplete.Missing = append(incomplete.Missing, Missing{file.name, err})
		}
	}
	if stays, err = f.publish(draft); err != nil && stays {
		return fmt.Errorf("report: %w; what was to be there is in %s", err, draft)
	} else if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if len(incomplete.Missing) > 0 {
		return incomplete
	}
	return nil
}

// file is one of the files of a folder.
type file struct {
	name  string
	write func(io.Writer) error
}

// filesOf lists the files of a folder. What matters most comes first: there may not be room for all. A result of several
// processes has no recording: each of theirs is in its own folder.
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
	names := newNames(r)
	for i := range r.Topics {
		t := &r.Topics[i]
		for _, trend := range trendNames(t) {
			all = append(all, file{names.of(t.Broker, t.Topic) + "." + trend + hgrm, func(w io.Writer) error {
				return t.Trends[trend].WriteHGRM(w, time.Millisecond)
			}})
		}
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		for trend := range recording.Trend(recording.NumTrends) {
			if r.Recording != nil && (t.Trends[trend.String()] != nil || t.Trends[trend.In(recording.Closed)] != nil) {
				all = append(all, file{names.of(t.Broker, t.Topic) + "." + trend.String() + hlog, func(w io.Writer) error { return r.WriteLog(w, t, trend) }})
			}
		}
	}
	return all
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path) //gosec:disable G304 -- a file of the results
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Sync(), file.Close())
}

// WriteAtomic writes one file so that it is whole at all times: a temporary file beside it is given its name.
func WriteAtomic(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	err = errors.Join(write(file), file.Chmod(0o644), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// WriteSummary writes a result as JSON.
func WriteSummary(w io.Writer, r *result.Result) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ") // more would be half of the file
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	_, err := text.WriteTo(w)
	return err
}
