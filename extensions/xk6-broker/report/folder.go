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
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// The files of a results folder that have fixed names. The distributions are beside them, <topic>.<trend>.hgrm and .hlog.
const (
	SummaryFile = "summary.json"
	PageFile    = "report.html"
	LedgerFile  = "ledger.bin" // which messages were confirmed and which received, for merging
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

// Check tells whether results can be written there: ErrExists where there are some and they shall not be replaced.
func (f Folder) Check() error {
	if f.Name == "" || f.Name != Sanitise(f.Name) {
		return fmt.Errorf("report: %q is no name for a folder: use letters, digits, '.', '_' and '-'", f.Name)
	}
	entries, err := os.ReadDir(f.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("report: %w", err)
	case !f.Overwrite:
		return fmt.Errorf("report: the folder %s %w: choose another name, or overwrite it (overwrite: true, BROKER_REPORT_OVERWRITE=true)",
			f.Path(), ErrExists)
	}
	if _, err := os.Stat(filepath.Join(f.Path(), SummaryFile)); err != nil && len(entries) > 0 {
		return fmt.Errorf("report: the folder %s %w and holds no results that could be overwritten: choose another name", f.Path(), ErrExists)
	}
	return nil
}

// Write writes a result and its logs: all files of the folder appear at once. Results that are replaced go file by file, each
// whole at all times, and other files in the folder stay. A ledger is written where there is one.
func (f Folder) Write(r *load.Result, logs []load.IntervalLog, ledger []byte) error {
	if err := f.Check(); err != nil {
		return err
	}
	if err := os.MkdirAll(f.Dir, 0o777); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	draft, err := os.MkdirTemp(f.Dir, "."+f.Name+"-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer func() { _ = os.RemoveAll(draft) }() // gone where all went well
	if err := f.write(draft, r, logs, ledger); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (f Folder) write(draft string, r *load.Result, logs []load.IntervalLog, ledger []byte) error {
	if err := os.Chmod(draft, 0o755); err != nil { //nolint:gosec // results are there to be read
		return err
	}
	if err := writeFile(filepath.Join(draft, SummaryFile), func(w io.Writer) error { return WriteSummary(w, r) }); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(draft, PageFile), func(w io.Writer) error { return HTML(w, r) }); err != nil {
		return err
	}
	if len(ledger) > 0 {
		if err := writeFile(filepath.Join(draft, LedgerFile), text(ledger)); err != nil {
			return err
		}
	}
	names := newNames(r)
	for i := range r.Topics {
		t := &r.Topics[i]
		for _, trend := range trendNames(t) {
			path := filepath.Join(draft, names.of(t.Broker, t.Topic)+"."+trend+".hgrm")
			err := writeFile(path, func(w io.Writer) error { return t.Trends[trend].WriteHGRM(w, time.Millisecond) })
			if err != nil {
				return err
			}
		}
	}
	for _, log := range logs {
		path := filepath.Join(draft, names.of(log.Broker, log.Topic)+"."+log.Trend.String()+".hlog")
		if err := writeFile(path, text(log.Text)); err != nil {
			return err
		}
	}
	return f.publish(draft)
}

func text(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Sync(), file.Close())
}

// publish gives a draft its name.
func (f Folder) publish(draft string) error {
	err := os.Rename(draft, f.Path()) // fails where there is a folder with anything in it
	if err == nil || !f.Overwrite {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("the folder %s %w", f.Path(), ErrExists)
		}
		return err
	}
	drafts, err := os.ReadDir(draft)
	if err != nil {
		return err
	}
	fresh := map[string]bool{}
	for _, d := range drafts {
		fresh[d.Name()] = true
		if err := os.Rename(filepath.Join(draft, d.Name()), filepath.Join(f.Path(), d.Name())); err != nil {
			return err
		}
	}
	old, err := os.ReadDir(f.Path())
	if err != nil {
		return err
	}
	for _, o := range old { // distributions of topics that this run did not have
		if name := o.Name(); !fresh[name] && (name == LedgerFile || strings.HasSuffix(name, ".hgrm") || strings.HasSuffix(name, ".hlog")) {
			if err := os.Remove(filepath.Join(f.Path(), name)); err != nil {
				return err
			}
		}
	}
	return nil
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
func WriteSummary(w io.Writer, r *load.Result) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	_, err := text.WriteTo(w)
	return err
}
