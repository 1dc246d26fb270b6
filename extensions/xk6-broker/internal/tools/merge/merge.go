// Package merge joins the results of the processes of one test, which it finds in folders or receives over HTTP.
package merge

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/compare"
)

// Errors of a merged result that does not pass.
var (
	ErrInvalid   = errors.New("the result is not valid: see its verdict (--allow-invalid lets it pass)")
	ErrCondition = errors.New("a --fail-if holds, or cannot be decided")
)

// Options are the options of a merge.
type Options struct {
	Out          string
	Overwrite    bool
	Processes    int // 0 for the number in the results
	FailIf       []string
	AllowInvalid bool
	AllowKilled  bool // a process that was killed does not make the result invalid
}

// Conditions parses conditions.
func Conditions(texts []string) ([]compare.Condition, error) {
	conditions := make([]compare.Condition, len(texts))
	for i, text := range texts {
		var err error
		if conditions[i], err = compare.ParseCondition(text); err != nil {
			return nil, err
		}
	}
	return conditions, nil
}

// check parses the conditions, and checks the folder.
func (o *Options) check() (conditions []compare.Condition, folder report.Folder, err error) {
	folder = report.Folder{Dir: filepath.Dir(o.Out), Name: filepath.Base(o.Out), Overwrite: o.Overwrite}
	if o.Processes < 0 || o.Processes == 1 {
		return nil, folder, fmt.Errorf("--processes %d: give the number of processes of the test, 2 or more", o.Processes)
	}
	if conditions, err = Conditions(o.FailIf); err != nil {
		return nil, folder, err
	}
	if slices.ContainsFunc(conditions, compare.Condition.Relative) {
		return nil, folder, errors.New("--fail-if: the limit must be a duration or a number: there is nothing to compare with")
	}
	return conditions, folder, folder.Check()
}

// Join merges folders into one, without the absent processes, and judges the whole.
func (o *Options) Join(w io.Writer, dirs, absent []string) error {
	conditions, folder, err := o.check()
	if err != nil {
		return err
	}
	parts := make([]result.Part, len(dirs))
	for i, dir := range dirs {
		if parts[i], err = report.ReadPart(dir); err != nil {
			return err
		}
	}
	merged, err := result.Merge(parts, result.Siblings{Processes: o.Processes, Absent: absent, Killed: o.AllowKilled})
	if err != nil {
		return err
	}
	merged.Name = folder.Name
	if err := folder.Write(merged, nil); err != nil {
		return err
	}
	if err := report.Text(w, merged); err != nil {
		return err
	}
	fmt.Fprintf(w, "  results: %s\n", filepath.Join(folder.Path(), report.PageFile))
	var findings []compare.Finding
	for _, c := range conditions {
		findings = append(findings, c.Judge(merged)...)
	}
	if err := Report(w, findings); err != nil {
		return err
	}
	if !merged.Verdict.Valid && !o.AllowInvalid {
		return ErrInvalid
	}
	return nil
}

// Report prints findings. It returns ErrCondition if one failed.
func Report(w io.Writer, findings []compare.Finding) (err error) {
	for _, f := range findings {
		word := "passed"
		if f.Failed {
			word, err = "FAILED", ErrCondition
		}
		fmt.Fprintf(w, "\n  %s  fail if %s: %s\n", word, f.Condition.Text, f.Text)
	}
	return err
}
