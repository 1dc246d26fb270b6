// Package merge joins the results of the processes of one test, which it finds in folders or
// receives over HTTP.
package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/coordinator"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/compare"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
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
		return nil, folder, fmt.Errorf("--processes %d: a test has 2 or more", o.Processes)
	}
	if conditions, err = Conditions(o.FailIf); err != nil {
		return nil, folder, err
	}
	if slices.ContainsFunc(conditions, compare.Condition.Relative) {
		return nil, folder, errors.New("--fail-if: the limit of a merged result is a duration or a number")
	}
	return conditions, folder, folder.Check()
}

// Join merges folders into one, without the absent processes, and judges the whole.
func (o *Options) Join(w io.Writer, dirs, absent []string) error {
	conditions, folder, err := o.check()
	if err != nil {
		return err
	}
	parts := make([]verdict.Part, len(dirs))
	for i, dir := range dirs {
		if parts[i], err = report.ReadPart(dir); err != nil {
			return err
		}
	}
	merged, err := verdict.Merge(parts, verdict.Siblings{Processes: o.Processes, Absent: absent, Killed: o.AllowKilled})
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

// ErrInterrupted is the error of a coordinator that ended before all results were here.
var ErrInterrupted = errors.New("interrupted")

// Coordinator receives the results of the processes of a test, and joins them.
type Coordinator struct {
	Options
	Listen  string
	Test    string // BROKER_RUN of the processes; "" takes that of the first
	Token   string
	Timeout time.Duration // of a process that does not come
	Log     io.Writer
}

func (c *Coordinator) say(text string) { fmt.Fprintln(c.Log, text) }

// Do coordinates a test until all results are here, and joins them.
func (c *Coordinator) Do(ctx context.Context, w io.Writer) error {
	_, folder, err := c.check()
	if err != nil {
		return err
	}
	processes := folder.Path() + "-processes"
	if _, err := os.Stat(processes); err == nil && !c.Overwrite {
		return fmt.Errorf("the folder %s %w: choose another -o, or --overwrite", processes, report.ErrExists)
	}
	server := coordinator.New(coordinator.Config{
		Run: c.Test, Name: fmt.Sprintf("%s-%d", folder.Name, time.Now().UnixNano()), Token: c.Token,
		Processes: c.Processes, Timeout: c.Timeout, Dir: processes, Tell: c.say, Unpack: unpack,
	})
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	serving := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = serving.Serve(listener) }() // it ends with Close
	defer serving.Close()                       //nolint:errcheck // the process ends
	c.say(fmt.Sprintf("waiting for %d processes: BROKER_COORDINATOR=http://%s", c.Processes, listener.Addr()))
	err = server.Wait(ctx)
	dirs, missing := server.Results()
	if len(missing) > 0 {
		c.say("missing: " + strings.Join(missing, ", "))
	}
	if err != nil {
		return fmt.Errorf("%w: k6 x broker merge joins the folders in %s", ErrInterrupted, processes)
	}
	if len(dirs) == 0 {
		return fmt.Errorf("no process sent its results within %v (--timeout)", c.Timeout)
	}
	return c.Join(w, dirs, missing)
}

// unpack writes the results of a process into a folder, which has an earlier test only with
// --overwrite.
func unpack(packed *os.File, size int64, folder string, process coordinator.Hello) error {
	//gosec:disable G301 -- others may read results
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	if err := report.Unpack(packed, size, folder); err != nil {
		return err
	}
	part, err := report.ReadPart(folder)
	if err != nil {
		return err
	}
	if part.Ledger == nil || part.Ledger.Instance != process.Instance || part.Result.Instance != process.Instance {
		return fmt.Errorf("not a result of instance %d with its %s", process.Instance, report.LedgerFile)
	}
	return nil
}
