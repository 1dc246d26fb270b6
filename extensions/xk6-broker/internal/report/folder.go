package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// The files of a folder with fixed names. Distributions are in <topic>.<trend>.hgrm and .hlog.
const (
	SummaryFile   = "summary.json"
	PageFile      = "report.html"
	LedgerFile    = "ledger.bin"    // the messages confirmed and received, for merging
	RecordingFile = "recording.bin" // the measurements of one process, second by second

	hgrm, hlog = ".hgrm", ".hlog"
)

// isResult reports whether a file has a name of a file of results.
func isResult(name string) bool {
	switch filepath.Ext(name) {
	case hgrm, hlog:
		return true
	case filepath.Ext(PageFile):
		return strings.HasPrefix(name, "report")
	}
	return name == SummaryFile || name == LedgerFile || name == RecordingFile
}

// ErrExists is the error of a folder that has results already.
var ErrExists = errors.New("exists already")

// Folder is where the results of a run go.
type Folder struct {
	Dir       string // created if it does not exist
	Name      string // of the folder in Dir
	Overwrite bool   // results in the folder may be replaced
}

// Path is the folder's path.
func (f Folder) Path() string { return filepath.Join(f.Dir, f.Name) }

// Meanwhile is the folder of the results so far, for a run that may be killed.
func (f Folder) Meanwhile() Folder {
	f.Name += "-meanwhile"
	return f
}

// WriteMeanwhile writes the results so far, without measurements: they are in the recording. Ledger
// and summary are not replaced at one instant, so the ledger contains its own summary.
func (f Folder) WriteMeanwhile(r *result.Result, ledger *account.Ledger) error {
	if err := os.MkdirAll(f.Path(), 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
		return fmt.Errorf("report: %w", err)
	}
	named := *r
	named.Name, named.Unfinished = f.Name, true
	named.Verdict = result.Verdict{Reasons: []reason.Reason{}} // it depends on the recording
	var text bytes.Buffer
	if err := WriteSummary(&text, &named); err != nil {
		return err
	}
	if ledger != nil {
		unfinished := *ledger
		unfinished.Unfinished, unfinished.Summary = true, text.Bytes()
		if err := WriteAtomic(filepath.Join(f.Path(), LedgerFile), unfinished.Write); err != nil {
			return err
		}
	}
	return WriteAtomic(filepath.Join(f.Path(), SummaryFile), func(w io.Writer) error {
		_, err := w.Write(text.Bytes())
		return err
	})
}

// Check returns an error if results cannot be written there: ErrExists if they would replace files.
func (f Folder) Check() error {
	if f.Name == "" || f.Name != Sanitise(f.Name) {
		return fmt.Errorf("report: %q is no name for a folder: use letters, digits, '.', '_' and '-'", f.Name)
	}
	_, err := os.Stat(f.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("report: %w", err)
	case !f.Overwrite:
		const advice = "choose another name, or overwrite it (overwrite: true, BROKER_REPORT_OVERWRITE=true)"
		return fmt.Errorf("report: %s %w: %s", f.Path(), ErrExists, advice)
	}
	entries, err := os.ReadDir(f.Path())
	for _, e := range entries {
		if !isResult(e.Name()) {
			err = fmt.Errorf("it contains %s, which is no result", e.Name())
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("report: %s %w and cannot be overwritten: %w", f.Path(), ErrExists, err)
	}
	return nil
}

// Free is the folder, or the first free one with a number at the end of its name.
func (f Folder) Free() Folder {
	name := f.Name
	for n := 2; errors.Is(f.Check(), ErrExists); n++ {
		number := fmt.Sprintf("-%d", n)
		f.Name, f.Overwrite = name[:min(len(name), longestName-len(number))]+number, false
	}
	return f
}
