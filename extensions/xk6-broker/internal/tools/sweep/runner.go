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

// Cell is one run of the script: a k6 process with settings of its own and a folder for its results.
type Cell struct {
	Index      int // from 1, in the order of the study
	Repetition int // from 1
	Settings   Values
	Folder     string // its name in the study's folder of cells

	// Of one that is a process of a test with several: the test's name, and how many they are. Else it is a test by itself.
	Run       string
	Processes int
	Kill      *Kill // nil where it goes on to its end
}

// Kill is that a process is killed, so long after its first message.
type Kill struct{ After time.Duration }

func (c Cell) processes() string {
	if c.Processes == 0 {
		return ""
	}
	return strconv.Itoa(c.Processes)
}

// Outcome is what became of a cell.
type Outcome struct {
	Cell     Cell
	Result   *result.Result // nil where the cell failed
	Error    string         // why there is no result
	ExitCode int            // of the process: 99 where thresholds failed; -1 where there was none, or it was killed
	Started  time.Time      // of the process
	Ended    time.Time
	Cut      bool // the study's end cut it short: there is no result, whatever it has left
}

// LogFile is what a cell's process printed, in the cell's folder.
const LogFile = "k6.log"

// patience is how long a process that is told to end has for that: k6 lets iterations finish, runs teardown, and waits for messages.
const patience = 2 * time.Minute

// Runner runs cells.
type Runner struct {
	K6     string   // the program
	Script string   // its file
	Args   []string // of `k6 run`, before the script
	Folder string   // the cells' folders are made in it

	Reset      string        // a shell command before each cell; "" for none
	Pause      time.Duration // after it
	BeforeCell string        // a shell command right before the process; "" for none

	Keep bool // all files of the results, and not only summary and page
}

// Path is the folder of a cell.
func (r *Runner) Path(c Cell) string { return filepath.Join(r.Folder, c.Folder) }

// Run runs one cell: reset, pause, the command before the cell, k6. Whatever goes wrong with the cell is in its outcome, and is no error: an error
// means that the study cannot go on, as where its folder cannot be written. When ctx ends, what is running is told to end, and is waited for.
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
	case failure == nil && c.Kill != nil && o.ExitCode < 0: // it was killed, and did not fail before
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

// run does what a cell consists of.
func (r *Runner) run(ctx context.Context, c Cell, log io.Writer, o *Outcome) error {
	env := slices.Concat(os.Environ(), c.Settings.environment(), []string{
		"BROKER_REPORT=on", "BROKER_REPORT_DIR=" + r.Folder, "BROKER_REPORT_NAME=" + c.Folder, "BROKER_REPORT_OVERWRITE=false", "BROKER_REPORT_MEANWHILE=off", "BROKER_COORDINATOR=", "BROKER_RUN=" + c.Run, "BROKER_PROCESSES=" + c.processes(),
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
	var err error
	if c.Kill != nil {
		err = r.kill(ctx, c, append(env, "BROKER_REPORT_MEANWHILE=on"), log, k6...)
	} else if err = command(ctx, env, log, k6...); err == nil {
		o.ExitCode = 0
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		o.ExitCode = exit.ExitCode()
		return nil // its results say more
	}
	return err
}

// command runs one to its end, or to that of ctx, in a process group of its own: Ctrl-C on a terminal is for the study.
func command(ctx context.Context, env []string, log io.Writer, args ...string) error {
	return prepare(ctx, env, log, args...).Run()
}

func prepare(ctx context.Context, env []string, log io.Writer, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //gosec:disable G204 -- what the user asked for
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.WaitDelay = patience
	ofItsOwn(cmd)
	return cmd
}

// whole are the exit codes of tests that went on to their end: thresholds that failed, an end that the script itself made, a file of the results that could not be
// written. After any other a result is of a part of the test, or of nothing.
var whole = []int{0, thresholdsFailed, aborted, incomplete}

// Exit codes, of k6 but for the last, which is this module's.
const (
	thresholdsFailed = 99
	aborted          = 108
	incomplete       = 74
)

// read reads what the process has left; where it failed, its last error says why.
func (r *Runner) read(folder string, o *Outcome, log string) (*result.Result, error) {
	if !slices.Contains(whole, o.ExitCode) {
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

// lastError finds the last error that k6 logged; "" where there is none.
func lastError(log []byte) string {
	lines := bytes.Split(log, []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if line := string(line); strings.Contains(line, "level=error") {
			_, message, _ := strings.Cut(line, "msg=")
			if quoted, err := strconv.QuotedPrefix(message); err == nil {
				message, _ = strconv.Unquote(quoted) // it is quoted
			}
			message, more, _ := strings.Cut(strings.TrimSpace(message), "\n") // what follows is where in the script or, behind a colon, what it is
			if strings.HasSuffix(message, ":") {
				message += " " + strings.Join(strings.Fields(more), " ")
			}
			return Shown(strings.TrimSpace(message))
		}
	}
	return ""
}

// thin removes what is large of a cell's results: distributions, logs of intervals and the ledger.
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

// Asked is what a study that uses the runner was asked for, with what the environment says besides its settings.
func (r *Runner) Asked(s *Script, settings []Setting) []Fact {
	given := passed(r.Args)
	return append([]Fact{
		{"script", filepath.Base(s.Path)},
		{"the script's text", s.Hash},
		{"arguments for k6", compared(strings.Join(r.Args, " "), shownArgs(r.Args))},
		{"--reset", compared(r.Reset, Shown(r.Reset))},
		{"--pause", r.Pause.String()},
		{"--before-cell", compared(r.BeforeCell, Shown(r.BeforeCell))},
	}, s.Environment(func(name string) bool {
		return slices.Contains(given, name) || slices.ContainsFunc(settings, func(s Setting) bool { return s.Name == name })
	}, nil)...)
}

// CheckFlags refuses what is no argument of `k6 run`: with --help it reads them, and runs nothing.
func CheckFlags(ctx context.Context, k6 string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, err := output(ctx, nil, k6, slices.Concat([]string{"run"}, args, []string{"--help"})...)
	return err
}

// passed are the names that arguments of k6 set in the script's environment.
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

// CheckArgs refuses arguments of k6 that would set what the study sets.
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
