package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// readFile reads a file. The error names it.
func readFile[T any](path string, read func(io.Reader) (T, error)) (content T, err error) {
	file, err := os.Open(path) //gosec:disable G304 -- a file of the user's
	if err != nil {
		return content, fmt.Errorf("no results: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	if content, err = read(bufio.NewReader(file)); err != nil {
		return content, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// Read reads the result in a folder, or in its summary.
func Read(path string) (*result.Result, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, SummaryFile)
	}
	if filepath.Ext(path) == filepath.Ext(PageFile) {
		folder := filepath.Dir(path)
		return nil, fmt.Errorf("%s: a result is read from its folder, and not from a page: give %s", path, folder)
	}
	r, err := readFile(path, ReadSummary)
	if err == nil && r.Unfinished {
		_, err = measure(r, filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// measure fills in what a killed process measured, from the recording in its folder.
func measure(r *result.Result, folder string) (*recording.Recording, error) {
	rec, err := readRecording(folder)
	if err != nil {
		return nil, err
	}
	if all := rec.Intervals(); len(all) > 0 {
		r.Seconds = max(r.Seconds, time.Unix(0, all[len(all)-1].To).Sub(r.Started).Seconds())
	}
	r.Measure(rec)
	r.Topics = slices.DeleteFunc(r.Topics, func(t result.Topic) bool { return !t.Used() })
	verdict.Judge(r, verdict.Circumstances{Dropped: r.Dropped, Unserved: r.Unserved, CPU: r.CPU})
	return rec, nil
}

func readRecording(folder string) (*recording.Recording, error) {
	return readFile(filepath.Join(folder, RecordingFile), recording.Read)
}

// ReadPart reads the results of one process in a folder, for [verdict.Merge]. The ledger may be nil.
func ReadPart(folder string) (verdict.Part, error) {
	ledger, err := readFile(filepath.Join(folder, LedgerFile), account.ReadLedger)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return verdict.Part{}, err
	}
	p := verdict.Part{Ledger: ledger}
	if ledger != nil && ledger.Unfinished { // its process may have been killed between the two files
		if p.Result, err = ReadSummary(bytes.NewReader(ledger.Summary)); err != nil {
			return p, fmt.Errorf("%s in the ledger of %s: %w", SummaryFile, folder, err)
		}
		p.Recording, err = measure(p.Result, folder)
		return p, err
	}
	if p.Result, err = Read(folder); err != nil {
		return p, err
	}
	p.Recording, err = readRecording(folder)
	return p, err
}

// Recut adds to the result of a folder the phase between two times, in seconds from the start, as
// the leading phase. See [result.Result.Cut].
func Recut(folder string, r *result.Result, from, to float64) error {
	rec, err := readRecording(folder)
	if err != nil {
		return err
	}
	if err := r.Cut(rec, from, to); err != nil {
		return err
	}
	verdict.Describe(r)
	return nil
}

// ReadSummary reads a result that WriteSummary wrote. It refuses another version, and damage that
// would mislead a report, a comparison or a merge.
func ReadSummary(from io.Reader) (*result.Result, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	var r result.Result
	err = json.Unmarshal(text, &r)
	if r.Version != result.Version && json.Valid(text) {
		return nil, fmt.Errorf("a result of version %d: this program reads version %d", r.Version, result.Version)
	}
	if err = cmp.Or(err, check(&r)); err != nil {
		return nil, fmt.Errorf("no result, or a damaged one: %w", err)
	}
	verdict.Describe(&r) // the histograms are exact, their percentiles are derived
	return &r, nil
}

// check returns an error if no run can have written a result.
func check(r *result.Result) error {
	for _, t := range r.Topics {
		trends := []map[string]*hist.Histogram{t.Trends}
		for _, p := range r.Phases {
			trends = append(trends, t.Phases[p.Name].Trends)
		}
		for _, all := range trends {
			for name, h := range all {
				if h == nil {
					return fmt.Errorf("topic %q: the trend %q is empty", t.Topic, name)
				}
			}
		}
	}
	if r.Leading != "" && r.Phase(r.Leading) == nil {
		return fmt.Errorf("there is no phase %q, which leads", r.Leading)
	}
	return nil
}
