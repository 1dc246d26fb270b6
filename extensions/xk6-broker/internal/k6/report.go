package k6

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// reportDir is where results go, in the folder that k6 was started in.
const reportDir = "results"

// nameTime is how a run's time stands in its folder's name.
const nameTime = "20060102T150405Z"

var errTooEarly = errors.New("report: the test has not ended: call it in handleSummary")

// reportOptions reads what a script says of the folder; the name may be missing.
func reportOptions(of string, v sobek.Value) (report.Folder, error) {
	o, err := readOptions(of, v)
	if err != nil {
		return report.Folder{}, err
	}
	return folderOf(of, o.given)
}

// checkReport fails in init where report would fail in handleSummary: an hour of test later is late to learn that a folder is taken. It
// looks only in the first init context of the process, for later ones are of VUs, and of handleSummary itself: what is taken by then is
// taken too late to stop the test.
func (in *instance) checkReport(v sobek.Value) error {
	f, err := reportOptions("checkReport", v)
	if err != nil || !in.first || in.vu.State() != nil {
		return err
	}
	in.run.wanted.Store(true)
	if f.Name == "" {
		return nil
	}
	return f.Check()
}

// report writes the folder of results and returns its path; nothing is written where the test used no broker. It throws where its options
// are wrong. What the disk does not take is told at the end, with the table, and by the exit code: handleSummary has other things to do.
func (in *instance) report(v sobek.Value) (any, error) {
	r := in.run
	if in.vu.State() == nil || !r.over.Load() && !in.endedUnsaid() {
		return nil, errTooEarly
	}
	f, err := reportOptions("report", v)
	if err != nil {
		r.reported.Store(&reported{err: err})
		return nil, err
	}
	if r.state.Load() == nil {
		return nil, nil // undefined is what the script gets
	}
	result := r.result()
	if f.Name == "" {
		f.Name = r.defaultName(result.Started.UnixNano())
		f = f.Free()
	}
	ledger := r.savedLedger()
	saved, err := f.Save(result, ledger)
	if err == nil && saved != f {
		r.logger.Warnf("%s exists already: the results are in %s", f.Path(), saved.Path())
	}
	named := *result
	named.Name = cmp.Or(saved.Name, f.Name)
	done := &reported{err: err, unsent: &unsent{&named, ledger}}
	defer r.reported.Store(done)
	if saved.Name == "" {
		return nil, nil // there is none
	}
	done.folder = saved.Path()
	if so := r.meanwhile.Load(); so != nil {
		if err := os.RemoveAll(so.Path()); err != nil {
			r.logger.WithError(err).Warn("the results so far could not be removed: the test has ended")
		}
	}
	return saved.Path(), nil
}

// endedUnsaid reports whether the test has ended although k6 has not said so, as it does not where it panics itself; then it is ended here.
func (in *instance) endedUnsaid() bool {
	r := in.run
	state := r.state.Load()
	if state == nil { // then there is nothing to end; a VU that runs has k6's state
		return lib.GetExecutionState(in.vu.Context()) == nil
	}
	if state.execution.GetCurrentExecutionStatus() != lib.ExecutionStatusInterrupted {
		return false
	}
	r.ended.Do(r.end)
	r.over.Store(true)
	return true
}

// reported is what became of the results.
type reported struct {
	folder string  // "" where they are nowhere
	err    error   // why not all of them are where they should be
	unsent *unsent // what a collector is to get
	sent   bool    // it has it
}

var errNotReported = errors.New("report: results were asked for, and handleSummary did not write them: export { handleSummary } from 'k6/x/broker', or see its error")

// unwritten says why results that were asked for are not there as a whole, if so.
func (r *run) unwritten() error {
	if done := r.reported.Load(); done != nil {
		return done.err
	}
	if r.wanted.Load() && r.state.Load() != nil && !r.quiet {
		return errNotReported
	}
	return nil
}

// ExitUnwritten is the exit code of a run that would have ended well, but for results that were asked for and could not be written as a
// whole: EX_IOERR of sysexits.h, which is no code of k6.
const ExitUnwritten = 74

// ExitCode gives the code that the process is to exit with, where k6 would exit with the one given.
func (m *Module) ExitCode(code int) int {
	if m.run != nil && (m.run.unmet() != nil || code == 0 && m.run.unwritten() != nil) {
		return ExitUnwritten
	}
	return code
}

// scriptFile is the name of the script's file; "" where it came by standard input.
func (r *run) scriptFile() string {
	runner := r.state.Load().execution.Test.Runner
	if runner == nil { // k6 always has one
		return ""
	}
	archive := runner.MakeArchive()
	if archive == nil || archive.FilenameURL == nil {
		return ""
	}
	if base := path.Base(archive.FilenameURL.Path); base != "-" && base != "/" && base != "." {
		return base
	}
	return ""
}

// defaultName is the name of the folder where nobody gave one; processes of one test have different ones.
func (r *run) defaultName(started int64) string {
	name := r.scriptName() + "-" + time.Unix(0, started).UTC().Format(nameTime)
	if n, index := r.Processes(); index >= 0 {
		name += fmt.Sprintf("-%d-of-%d", index+1, n)
	} else if r.shared {
		name += fmt.Sprintf("-%08x", r.Instance())
	}
	return report.Sanitise(name)
}

// scriptName is the name of the script's file without its extension.
func (r *run) scriptName() string {
	base := r.scriptFile()
	if name := report.Sanitise(strings.TrimSuffix(base, path.Ext(base))); name != "" && name != "_" {
		return name
	}
	return "run"
}

// thinned reports whether k6 has fewer samples of a latency than there were. The last must have been passed on.
func (r *run) thinned() bool {
	for _, trend := range r.flusher.thinners {
		if trend.Thinned() {
			return true
		}
	}
	return slices.ContainsFunc(executors.Totals(), func(t executors.ScenarioTotals) bool { return t.Sampled != nil && t.Sampled.Count() < t.Lag.Count() })
}

// printReport prints the table of the run, and where its results are.
func (r *run) printReport() error {
	if err := report.Text(os.Stdout, r.result()); err != nil {
		return err
	}
	if r.thinned() {
		_, _ = fmt.Fprintf(os.Stdout, "  (k6's summary is made of up to %d samples a second of each latency; this table, and the thresholds, of all)\n\n", samples.Budget)
	}
	if done := r.reported.Load(); done != nil && done.folder != "" {
		shown := filepath.Join(done.folder, report.PageFile)
		if _, err := os.Stat(shown); err != nil {
			shown = filepath.Join(done.folder, report.SummaryFile)
		}
		if _, err := fmt.Fprintf(os.Stdout, "  results: %s\n\n", shown); err != nil {
			return err
		}
	}
	if done := r.reported.Load(); done != nil && done.sent {
		if _, err := fmt.Fprintf(os.Stdout, "  sent to the coordinator at %s\n\n", r.coordination.address); err != nil {
			return err
		}
	}
	return r.unwritten()
}

// savedLedger is the ledger that the results are saved with; nil if the run has no name, and so no other process.
func (r *run) savedLedger() *account.Ledger {
	if !r.Named() {
		return nil
	}
	return r.Ledger()
}
