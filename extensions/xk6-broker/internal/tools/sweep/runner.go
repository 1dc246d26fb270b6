package sweep

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Cell is one run of the script: a k6 process with its own settings and folder.
type Cell struct {
	Index      int // from 1, in the order of the study
	Repetition int // from 1
	Settings   Values
	Folder     string // its name in the study's folder of cells

	// Of one of several processes of a test: the test's name, and the number of processes.
	Run       string
	Processes int
	Kill      time.Duration // the process is killed so long after its start; 0 if it is not
}

// Outcome is the outcome of a cell.
type Outcome struct {
	Cell     Cell
	Result   *result.Result // nil if the cell failed
	Error    string         // why there is no result
	ExitCode int            // of the process: 99 if thresholds failed; -1 if there was none, or it was killed
	Started  time.Time      // of the process
	Ended    time.Time
	Cut      bool // the end of the study cut it short
}

// LogFile is the output of a cell's process, in the cell's folder.
const LogFile = "k6.log"

// endTimeout is how long an interrupted process may take: k6 lets iterations finish, runs teardown, and drains.
const endTimeout = 2 * time.Minute

// Runner runs cells.
type Runner struct {
	K6     string   // the program
	Script string   // its file
	Args   []string // of k6 run, before the script
	Folder string   // the cells' folders are made in it

	Reset      string        // a shell command before each cell; "" for none
	Pause      time.Duration // after it
	BeforeCell string        // a shell command right before the process; "" for none

	Keep bool // all files of the results, and not only summary and page
}

// Path returns the folder of a cell.
func (r *Runner) Path(c Cell) string { return filepath.Join(r.Folder, c.Folder) }

// Run runs one cell: reset, pause, the command before the cell, k6. The failure of a cell is in its outcome; an error means
// that the study cannot go on. When ctx ends, the running process is interrupted.
func (r *Runner) Run(ctx context.Context, c Cell) (Outcome, error) {
	folder := r.Path(c)
	if err := errors.Join(os.RemoveAll(folder), os.RemoveAll(r.meanwhile(c))); err != nil { // what an interrupted study left of it
		return Outcome{}, fmt.Errorf("study: %w", err)
	}
	if err := os.MkdirAll(r.Folder, 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
		return Outcome{}, fmt.Errorf("study: %w", err)
	}
	// A folder that has anything else in it takes no results, so the log lies beside it until there are some.
	logged := folder + ".log"
	log, err := os.Create(logged) //gosec:disable G304 -- a file of the study
	if err != nil {
		return Outcome{}, fmt.Errorf("study: %w", err)
	}
	o := Outcome{Cell: c, ExitCode: -1, Started: time.Now()}
	failure := r.run(ctx, c, log, &o)
	o.Ended = time.Now()
	err = log.Close()
	o.Cut = ctx.Err() != nil
	switch {
	case o.Cut:
		failure = errors.New("it was ended")
	case failure == nil && c.Kill > 0 && o.ExitCode < 0:
		o.Result, failure = r.left(c)
	case failure == nil:
		o.Result, failure = r.read(folder, &o, logged)
	}
	if failure != nil {
		o.Error = failure.Error()
	}
	if err := errors.Join(err, os.MkdirAll(folder, 0o777), os.Rename(logged, filepath.Join(folder, LogFile))); err != nil { //gosec:disable G301 -- as above
		return o, fmt.Errorf("study: %w", err)
	}
	if !r.Keep {
		if err := thin(folder); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (r *Runner) run(ctx context.Context, c Cell, log io.Writer, o *Outcome) error {
	processes, meanwhile := "", "off"
	if c.Processes > 0 {
		processes = strconv.Itoa(c.Processes)
	}
	if c.Kill > 0 {
		meanwhile = "on"
	}
	env := slices.Concat(os.Environ(), c.Settings.environment(), []string{
		"BROKER_REPORT=on", "BROKER_REPORT_DIR=" + r.Folder, "BROKER_REPORT_NAME=" + c.Folder, "BROKER_REPORT_OVERWRITE=false",
		"BROKER_REPORT_MEANWHILE=" + meanwhile, "BROKER_COORDINATOR=", "BROKER_RUN=" + c.Run, "BROKER_PROCESSES=" + processes,
	})
	if r.Reset != "" {
		if err := command(ctx, env, log, shell(r.Reset)...); err != nil {
			return fmt.Errorf("--reset failed: %w", err)
		}
	}
	if r.Pause > 0 {
		select {
		case <-time.After(r.Pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if r.BeforeCell != "" {
		if err := command(ctx, env, log, shell(r.BeforeCell)...); err != nil {
			return fmt.Errorf("--before-cell failed: %w", err)
		}
	}
	o.Started = time.Now()
	k6 := slices.Concat([]string{r.K6, "run"}, r.Args, []string{r.Script})
	cmd := prepare(ctx, env, log, k6...)
	err := cmd.Start()
	if err != nil {
		return err
	}
	if c.Kill > 0 {
		timer := time.AfterFunc(c.Kill, func() { _ = cmd.Process.Kill() }) // it may have ended
		defer timer.Stop()
	}
	if err = cmd.Wait(); err == nil {
		o.ExitCode = 0
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		o.ExitCode = exit.ExitCode()
		return nil // its results say more
	}
	return err
}

// command runs a command in a process group of its own: Ctrl-C on a terminal is for the study.
func command(ctx context.Context, env []string, log io.Writer, args ...string) error {
	return prepare(ctx, env, log, args...).Run()
}

func prepare(ctx context.Context, env []string, log io.Writer, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //gosec:disable G204 -- what the user asked for
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.WaitDelay = endTimeout
	ofItsOwn(cmd)
	return cmd
}

// complete are the exit codes of tests that ran to their end.
var complete = []int{0, thresholdsFailed, aborted, incomplete}

// Exit codes, of k6 but for the last, which is this module's.
const (
	thresholdsFailed = 99
	aborted          = 108
	incomplete       = 74
)

// meanwhile is the folder of a process's results so far.
func (r *Runner) meanwhile(c Cell) string {
	return report.Folder{Dir: r.Folder, Name: c.Folder}.Meanwhile().Path()
}

// left returns the result of a killed process.
func (r *Runner) left(c Cell) (*result.Result, error) {
	if err := os.Rename(r.meanwhile(c), r.Path(c)); err != nil {
		return nil, fmt.Errorf("it left no result before it was killed: %w", err)
	}
	return report.Read(r.Path(c))
}

// read reads the result of a process, or its last error.
func (r *Runner) read(folder string, o *Outcome, log string) (*result.Result, error) {
	if !slices.Contains(complete, o.ExitCode) {
		text, _ := os.ReadFile(log) //gosec:disable G304 -- a file of the study; without it there is less to say
		return nil, fmt.Errorf("k6 ended with exit code %d: %s", o.ExitCode, cmp.Or(lastError(text), "see "+LogFile))
	}
	found, err := report.Read(folder)
	switch {
	case err == nil && found.Started.Before(o.Started):
		return nil, fmt.Errorf("the result in %s is of a process that began before this cell: is a study that was killed still running one?", folder)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return found, err
	}
	return nil, errors.New("it left no result: does the script have export { handleSummary } from 'k6/x/broker'?")
}

// lastError returns the last error that k6 logged.
func lastError(log []byte) string {
	lines := bytes.Split(log, []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if line := string(line); strings.Contains(line, "level=error") {
			_, message, _ := strings.Cut(line, "msg=")
			if quoted, err := strconv.QuotedPrefix(message); err == nil {
				message, _ = strconv.Unquote(quoted) // it is quoted
			}
			message, more, _ := strings.Cut(strings.TrimSpace(message), "\n")
			if strings.HasSuffix(message, ":") {
				message += " " + strings.Join(strings.Fields(more), " ")
			}
			return Shown(strings.TrimSpace(message))
		}
	}
	return ""
}

// thin keeps only the summary, the page and the log of a cell.
func thin(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("study: %w", err)
	}
	for _, e := range entries {
		if slices.Contains([]string{report.SummaryFile, report.PageFile, LogFile}, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
			return fmt.Errorf("study: %w", err)
		}
	}
	return nil
}

// Asked returns the facts of the runner, the script and the environment.
func (r *Runner) Asked(s *Script, settings []Setting) []Fact {
	given := passed(r.Args)
	return append([]Fact{
		{"script", filepath.Base(s.Path)},
		{"the script's text", s.Hash},
		{"arguments for k6", Shown(strings.Join(r.Args, " "))},
		{"--reset", Shown(r.Reset)},
		{"--pause", r.Pause.String()},
		{"--before-cell", Shown(r.BeforeCell)},
	}, s.Environment(func(name string) bool {
		return slices.Contains(given, name) || slices.ContainsFunc(settings, func(s Setting) bool { return s.Name == name })
	})...)
}

// CheckFlags returns an error if k6 run does not have the arguments.
func CheckFlags(ctx context.Context, k6 string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, err := output(ctx, nil, k6, slices.Concat([]string{"run"}, args, []string{"--help"})...)
	return err
}

// passed returns the names that arguments of k6 set in the script's environment.
func passed(args []string) (names []string) {
	for i, arg := range args {
		value := ""
		switch {
		case (arg == "-e" || arg == "--env") && i+1 < len(args):
			value = args[i+1]
		case strings.HasPrefix(arg, "--env="):
			value = strings.TrimPrefix(arg, "--env=")
		case strings.HasPrefix(arg, "-e") && !strings.HasPrefix(arg, "--"):
			value = strings.TrimPrefix(strings.TrimPrefix(arg, "-e"), "=")
		}
		if name, _, _ := strings.Cut(value, "="); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// CheckArgs returns an error if arguments of k6 set what the study sets.
func CheckArgs(args []string, settings []Setting) error {
	for _, name := range passed(args) {
		if Reserved(name) {
			return fmt.Errorf("-e %s: it is the study's own", name)
		}
		if slices.ContainsFunc(settings, func(s Setting) bool { return s.Name == name }) {
			return fmt.Errorf("-e %s: the study sets %s itself: every cell would have the same", name, name)
		}
	}
	return nil
}
