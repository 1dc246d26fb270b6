package report

import (
	"bufio"
	"bytes"
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

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// Read reads the result in a folder, or in a file. The error says what is wrong with it and where.
func Read(path string) (*result.Result, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, SummaryFile)
	}
	if filepath.Ext(path) == filepath.Ext(PageFile) {
		return nil, fmt.Errorf("%s: a result is read from its folder, and not from a page: give %s", path, filepath.Dir(path))
	}
	file, err := os.Open(path) //gosec:disable G304 -- a file of the user's
	if err != nil {
		return nil, fmt.Errorf("no result: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	r, err := ReadSummary(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Unfinished {
		if _, err := measure(r, filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// measure fills in what a process that was killed has in the recording of its folder.
func measure(r *result.Result, folder string) (*recording.Recording, error) {
	rec, err := ReadRecording(folder)
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

// ReadLedger reads the ledger in a folder; it is nil if there is none.
func ReadLedger(folder string) (*account.Ledger, error) {
	path := filepath.Join(folder, LedgerFile)
	file, err := os.Open(path) //gosec:disable G304 -- a file of the user's
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // not every run has one
	}
	if err != nil {
		return nil, fmt.Errorf("no ledger: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	l, err := account.ReadLedger(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// ReadRecording reads the recording in a folder.
func ReadRecording(folder string) (*recording.Recording, error) {
	path := filepath.Join(folder, RecordingFile)
	file, err := os.Open(path) //gosec:disable G304 -- a file of the user's
	if err != nil {
		return nil, fmt.Errorf("no recording: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	rec, err := recording.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rec, nil
}

// ReadPart reads what one process of a test left in a folder, for [verdict.Merge]. Its ledger may be nil.
func ReadPart(folder string) (verdict.Part, error) {
	l, err := ReadLedger(folder)
	if err != nil {
		return verdict.Part{}, err
	}
	if l != nil && l.Unfinished { // its process may have been killed between the two files
		r, err := readSoFar(filepath.Join(folder, LedgerFile), l)
		if err != nil {
			return verdict.Part{}, err
		}
		rec, err := measure(r, folder)
		return verdict.Part{Result: r, Ledger: l, Recording: rec}, err
	}
	r, err := Read(folder)
	if err != nil {
		return verdict.Part{}, err
	}
	rec, err := ReadRecording(folder)
	return verdict.Part{Result: r, Ledger: l, Recording: rec}, err
}

// readSoFar reads the result that a ledger has of its own instant.
func readSoFar(path string, l *account.Ledger) (*result.Result, error) {
	r, err := ReadSummary(bytes.NewReader(l.Summary))
	if err != nil {
		return nil, fmt.Errorf("%s, which is of a process that was killed: %s: %w", path, SummaryFile, err)
	}
	return r, nil
}

// ReadSummary reads a result that WriteSummary wrote. What it accepts can be reported, compared and merged.
func ReadSummary(from io.Reader) (*result.Result, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	var versioned struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(text, &versioned); err != nil {
		return nil, fmt.Errorf("no result: %w", err)
	}
	switch {
	case versioned.Version == nil:
		return nil, errors.New("no result: it has no version")
	case *versioned.Version != result.Version:
		return nil, fmt.Errorf("a result of version %d: this program reads version %d", *versioned.Version, result.Version)
	}
	var r result.Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("a damaged result: %w", err)
	}
	if err := check(&r); err != nil {
		return nil, fmt.Errorf("a damaged result: %w", err)
	}
	return &r, nil
}

// check looks for what no run can have written, and spells out the percentiles anew, for the histograms are what counts.
func check(r *result.Result) error {
	seen := map[[2]string]bool{}
	for i := range r.Topics {
		t := &r.Topics[i]
		key := [2]string{t.Broker, t.Topic}
		if seen[key] {
			return fmt.Errorf("topic %q of %s is there twice", t.Topic, t.Broker)
		}
		seen[key] = true
		if err := checkTrends(t.Trends); err != nil {
			return fmt.Errorf("topic %q: %w", t.Topic, err)
		}
		for _, p := range r.Phases {
			w, ok := t.Phases[p.Name]
			if !ok {
				return fmt.Errorf("topic %q: nothing says what was in the phase %q", t.Topic, p.Name)
			}
			if err := checkTrends(w.Trends); err != nil {
				return fmt.Errorf("topic %q: phase %q: %w", t.Topic, p.Name, err)
			}
		}
		for name, n := range t.Counts {
			if n < 0 {
				return fmt.Errorf("topic %q: %d %s", t.Topic, n, name)
			}
		}
		last := 0.0
		for _, p := range t.History {
			if p.At < last || p.Seconds < 0 {
				return fmt.Errorf("topic %q: the history goes back at %v s", t.Topic, p.At)
			}
			last = p.At
		}
		for name, summaries := range t.OverTime {
			last := 0.0
			for _, s := range summaries {
				if s.At < last || s.Seconds < 0 {
					return fmt.Errorf("topic %q: %s goes back at %v s", t.Topic, name, s.At)
				}
				last = s.At
			}
		}
	}
	if r.Leading != "" && r.Phase(r.Leading) == nil {
		return fmt.Errorf("there is no phase %q, which leads", r.Leading)
	}
	verdict.Describe(r)
	return nil
}

func checkTrends(trends map[string]*hist.Histogram) error {
	for name, h := range trends {
		switch {
		case h == nil:
			return fmt.Errorf("the trend %q is empty", name)
		case name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "":
			return fmt.Errorf("%q is no trend's name", name)
		}
	}
	return nil
}
