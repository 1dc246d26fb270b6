package k6

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// This file writes the folder of results, and prints the table.

// The environment sets the options of handleSummary.
const (
	envReport    = "BROKER_REPORT"           // on or off
	envName      = "BROKER_REPORT_NAME"      // of the folder
	envDir       = "BROKER_REPORT_DIR"       // where it is made
	envOverwrite = "BROKER_REPORT_OVERWRITE" // true or false
	envMeanwhile = "BROKER_REPORT_MEANWHILE" // on or off: the results so far, once a second
)

// reportDir is the default folder, in k6's working directory.
const reportDir = "results"

// nameTime is the time in the name of a folder.
const nameTime = "20060102T150405Z"

var (
	errTooEarly    = errors.New("handleSummary: the test has not ended")
	errNotReported = errors.New("handleSummary did not write the results for the coordinator: " +
		"export { handleSummary } from 'k6/x/broker', or see its error")
)

// output is the state of the results' folder.
type output struct {
	settings

	quiet    bool                     // k6 prints no summary
	unkept   sync.Once                // an error of the results so far is logged once
	reported atomic.Pointer[reported] // once the results were written
}

// reported is the folder once it was written.
type reported struct {
	folder string // "" if there is none
	err    error
	result *result.Result
	ledger *account.Ledger
	sent   bool // to the coordinator
}

// settings are the options of handleSummary.
type settings struct {
	on        bool
	meanwhile bool
	folder    report.Folder
}

// settingsOf reads the environment of the script. It fails if handleSummary would fail at the end.
func settingsOf(env map[string]string) (s settings, err error) {
	flag := func(name, fallback, yes, no string) bool {
		value := cmp.Or(env[name], fallback)
		if value != yes && value != no {
			err = fmt.Errorf("%s: %q is not one of %s, %s", name, value, yes, no)
		}
		return value == yes
	}
	s.on, s.meanwhile = flag(envReport, "on", "on", "off"), flag(envMeanwhile, "off", "on", "off")
	s.folder = report.Folder{
		Dir: cmp.Or(env[envDir], reportDir), Name: env[envName], Overwrite: flag(envOverwrite, "false", "true", "false"),
	}
	switch {
	case err != nil || !s.on:
	case s.folder.Name != "":
		err = s.folder.Check()
	case s.meanwhile:
		err = fmt.Errorf("%s: the results so far need a name for their folder: set %s", envMeanwhile, envName)
	}
	return s, err
}

// handleSummary writes the folder. It returns undefined, so k6 prints its own summary too. An error
// of the disk is not thrown: it is printed at the end, and changes the exit code.
func (in *instance) handleSummary() error {
	r := in.run
	if in.vu.State() == nil || lib.GetExecutionState(in.vu.Context()) != nil {
		return errTooEarly
	}
	r.finish() // k6 has no event for the end if it panics, as with Ctrl-C in setup
	if !r.output.on || r.state.Load() == nil {
		return nil
	}
	named, f := *r.result(), r.output.folder
	if f.Name == "" {
		f.Name = r.defaultName(named.Started)
		f = f.Free()
	}
	done := &reported{ledger: r.savedLedger(), result: &named}
	saved, err := f.Save(&named, done.ledger)
	if err == nil && saved != f {
		r.logger.Warnf("%s exists already: the results are in %s", f.Path(), saved.Path())
	}
	named.Name, done.err = cmp.Or(saved.Name, f.Name), err
	if saved.Name != "" {
		done.folder = saved.Path()
	}
	r.output.reported.Store(done)
	if r.output.meanwhile && done.folder != "" {
		if err := os.RemoveAll(r.output.folder.Meanwhile().Path()); err != nil {
			r.logger.WithError(err).Warn("the results so far could not be removed")
		}
	}
	return nil
}

// savedLedger returns the ledger for other processes; nil if the run has no name.
func (r *run) savedLedger() *account.Ledger {
	if !r.Named() {
		return nil
	}
	return r.Ledger()
}

// keepMeanwhile writes the results so far once a second, until halt is called.
func (r *run) keepMeanwhile() (halt func()) {
	folder := r.output.folder.Meanwhile()
	update := func() { r.warnUnkept(folder.WriteMeanwhile(r.unmeasured(), r.savedLedger())) }
	update() // makes the folder
	r.warnUnkept(r.collector.RecordTo(filepath.Join(folder.Path(), report.RecordingFile)))
	return samples.Each(func(time.Time) { update() })
}

// warnUnkept logs the first error of writing the results so far.
func (r *run) warnUnkept(err error) {
	if err != nil {
		r.output.unkept.Do(func() { r.logger.WithError(err).Warn("the results so far could not be written") })
	}
}

// unwritten returns the error if requested results are not all written.
func (r *run) unwritten() error {
	if done := r.output.reported.Load(); done != nil {
		return done.err
	}
	if r.processes.coordination != nil && r.state.Load() != nil && !r.output.quiet {
		return errNotReported
	}
	return nil
}

// ExitUnwritten is the exit code if requested results could not be written: EX_IOERR of sysexits.h,
// which is not a code of k6.
const ExitUnwritten = 74

// ExitCode returns the exit code of the process in place of k6's.
func (m *Module) ExitCode(code int) int {
	if m.run != nil && (m.run.separated() != nil || code == 0 && m.run.unwritten() != nil) {
		return ExitUnwritten
	}
	return code
}

// scriptFile returns the name of the script's file; "" for standard input.
func (r *run) scriptFile() string {
	runner := r.state.Load().execution.Test.Runner
	if runner == nil {
		return ""
	}
	if base := path.Base(runner.MakeArchive().FilenameURL.Path); base != "-" {
		return base
	}
	return ""
}

// defaultName returns the name of the folder. Processes of one test have different ones.
func (r *run) defaultName(started time.Time) string {
	base := r.scriptFile()
	name := report.Sanitise(strings.TrimSuffix(base, path.Ext(base)))
	if name == "" || name == "_" {
		name = "run"
	}
	name += "-" + started.UTC().Format(nameTime)
	if n, index := r.Processes(); index >= 0 {
		name += fmt.Sprintf("-%d-of-%d", index+1, n)
	} else if r.Named() {
		name += fmt.Sprintf("-%08x", r.Instance())
	}
	return report.Sanitise(name)
}

// printTable prints the table after k6's own summary, and the path of the results.
func (r *run) printTable() {
	if r.state.Load() == nil || r.output.quiet {
		return
	}
	err := report.Text(os.Stdout, r.result())
	fmt.Printf("  (k6's summary has about %d samples a second of each latency; this table and the thresholds have all)\n\n",
		samples.Budget)
	if done := r.output.reported.Load(); done != nil {
		if done.folder != "" {
			path := filepath.Join(done.folder, report.PageFile)
			if _, err := os.Stat(path); err != nil { // the disk was full
				path = filepath.Join(done.folder, report.SummaryFile)
			}
			fmt.Printf("  results: %s\n\n", path)
		}
		if done.sent {
			fmt.Printf("  sent to the coordinator at %s\n\n", r.processes.coordination.address)
		}
	}
	if err = errors.Join(err, r.unwritten()); err != nil {
		r.logger.Error(err)
	}
}
