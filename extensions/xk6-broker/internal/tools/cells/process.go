package cells

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Cell is one run of a script: a k6 process with its own settings and folder.
type Cell struct {
	Folder     string    `json:"cell"` // the name of its folder, unique in the study
	Label      string    `json:"-"`    // for the terminal
	Row        string    `json:"-"`    // the name that all its repetitions have
	Repetition int       `json:"-"`    // from 1
	Script     string    `json:"-"`
	Settings   Settings  `json:"-"`
	Columns    []*Column `json:"-"` // for the terminal
}

// Folders and files of a study.
const (
	Folder    = "cells"
	LogSuffix = ".log" // of a cell's output, beside its folder
)

// endTimeout bounds how long an interrupted process may finish iterations, tear down and drain.
const endTimeout = 2 * time.Minute

// path returns the folder of a cell.
func (s *Study) path(c Cell) string { return filepath.Join(s.Folder, Folder, c.Folder) }

// run runs one cell. The failure of the cell is in its outcome; an error ends the study. The end of
// ctx interrupts the process, and the error is ErrStopped.
func (s *Study) run(ctx context.Context, c Cell) (Outcome, error) {
	folder := s.path(c)
	//gosec:disable G301 -- as the user's umask has it
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(filepath.Dir(folder), 0o777)); err != nil {
		return Outcome{}, err
	}
	log, err := os.Create(folder + LogSuffix) //gosec:disable G304 -- a file of the study
	if err != nil {
		return Outcome{}, err
	}
	defer log.Close() //nolint:errcheck // a log without its end is no failure
	o := Outcome{Cell: c, ExitCode: -1, Started: time.Now()}
	err = s.process(ctx, log, &o)
	if ctx.Err() != nil {
		return o, ErrStopped
	}
	if err == nil {
		o.Result, err = o.read(folder)
	}
	if err != nil {
		o.Error = err.Error()
	}
	return o, nil
}

// process runs the command before the cell, and k6.
func (s *Study) process(ctx context.Context, log *os.File, o *Outcome) error {
	env := slices.Concat(os.Environ(), o.Settings.environment(), []string{
		"BROKER_REPORT=on", "BROKER_REPORT_DIR=" + filepath.Dir(s.path(o.Cell)), "BROKER_REPORT_NAME=" + o.Folder,
		"BROKER_REPORT_OVERWRITE=false", "BROKER_REPORT_MEANWHILE=off",
		"BROKER_COORDINATOR=", "BROKER_RUN=", "BROKER_PROCESSES=",
	})
	start := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, name, args...) //gosec:disable G204 -- what the user asked for
		cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, log, log, endTimeout
		isolate(cmd)
		return cmd
	}
	if s.Reset != "" {
		if err := start("sh", "-c", s.Reset).Run(); err != nil {
			return fmt.Errorf("--reset failed: %w", err)
		}
	}
	k6, err := os.Executable()
	if err != nil {
		return err
	}
	o.Started = time.Now()
	cmd := start(k6, slices.Concat([]string{"run"}, s.Args, []string{o.Script})...)
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return err
	}
	o.ExitCode = cmd.ProcessState.ExitCode()
	return nil
}

// complete are the exit codes of tests that left results: also if thresholds failed, the test was
// aborted, or some results could not be written.
var complete = []int{0, 99, 108, 74}

// read returns the result that the process left, or its last error.
func (o *Outcome) read(folder string) (*result.Result, error) {
	log := folder + LogSuffix
	if !slices.Contains(complete, o.ExitCode) {
		text, _ := os.ReadFile(log) //gosec:disable G304 -- a file of the study
		return nil, fmt.Errorf("k6 ended with exit code %d: %s", o.ExitCode, cmp.Or(lastError(text), "see "+log))
	}
	found, err := report.Read(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("no result: the script needs export { handleSummary } from 'k6/x/broker'")
	case err == nil && found.Started.Before(o.Started):
		return nil, fmt.Errorf("the result in %s is older than the cell: does a killed study still run one?", folder)
	}
	return found, err
}

// lastError returns the message of the last error in a log of k6, without secrets.
func lastError(log []byte) string {
	for _, line := range slices.Backward(bytes.Split(log, []byte("\n"))) {
		if _, message, ok := strings.Cut(string(line), "level=error msg="); ok {
			return Shown(message)
		}
	}
	return ""
}
