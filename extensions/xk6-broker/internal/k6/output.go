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
	"sync"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
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
	errTooEarly    = errors.New("report: the test has not ended: call it in handleSummary")
	errNotReported = errors.New(
		"report: results were asked for, and handleSummary did not write them: export { handleSummary } from 'k6/x/broker', or see its error",
	)
)

// output is the state of the results' folder.
type output struct {
	quiet     bool                          // k6 prints no summary
	wanted    atomic.Bool                   // results were asked for
	meanwhile atomic.Pointer[report.Folder] // of the results so far; nil without them
	reported  atomic.Pointer[reported]      // once the results were written
}

// reported is what was written.
type reported struct {
	folder string // "" if there is none
	err    error
	result *result.Result
	ledger *account.Ledger
	sent   bool // to the coordinator
}

// settings are the options of handleSummary.
type settings struct {
	on, meanwhile bool
	folder        report.Folder
}

// settings reads the environment of the script.
func (in *instance) settings() (s settings, err error) {
	env, _ := in.vu.Runtime().GlobalObject().Get("__ENV").(*sobek.Object)
	read := func(name, fallback string) string {
		if env != nil {
			if v := env.Get(name); v != nil && v.String() != "" {
				return v.String()
			}
		}
		return fallback
	}
	flag := func(name, fallback, yes, no string) bool {
		value := read(name, fallback)
		if value != yes && value != no {
			err = fmt.Errorf("%s: %q is not one of %s, %s", name, value, yes, no)
		}
		return value == yes
	}
	s.folder = report.Folder{
		Dir:       read(envDir, reportDir),
		Name:      read(envName, ""),
		Overwrite: flag(envOverwrite, "false", "true", "false"),
	}
	s.on, s.meanwhile = flag(envReport, "on", "on", "off"), flag(envMeanwhile, "off", "on", "off")
	switch {
	case err != nil:
	case s.meanwhile && s.folder.Name == "":
		err = fmt.Errorf("%s: the results so far need a name for their folder: set %s", envMeanwhile, envName)
	default:
		err = checkName(envName, s.folder.Name)
	}
	return s, err
}

func checkName(option, name string) error {
	if name != report.Sanitise(name) {
		return fmt.Errorf(`%s: %q is not a name for a folder: use letters, digits, '.', '_' and '-'`, option, name)
	}
	return nil
}

// checkSettings fails in the init context if handleSummary would fail at the end.
func (in *instance) checkSettings() error {
	s, err := in.settings()
	if err != nil || !s.on || s.folder.Name == "" || !in.first {
		return err
	}
	if s.meanwhile {
		folder := s.folder.Meanwhile()
		in.run.output.meanwhile.Store(&folder)
	}
	return s.folder.Check()
}

// handleSummary writes the results by the environment. It returns undefined, so k6 prints its own
// summary too.
func (in *instance) handleSummary() error {
	s, err := in.settings()
	if err == nil && s.on {
		_, err = in.write(s.folder)
	}
	return err
}

// folderOf reads the options of report.
func folderOf(call string, v sobek.Value) (report.Folder, error) {
	o, err := readOptions(call, v)
	if err != nil {
		return report.Folder{}, err
	}
	f := report.Folder{Dir: o.text("dir", reportDir), Name: o.text("name", ""), Overwrite: o.boolean("overwrite")}
	return f, cmp.Or(o.done(), checkName(call+`: option "name"`, f.Name))
}

// checkReport fails in the first init context of the process if report would fail at the end.
func (in *instance) checkReport(v sobek.Value) error {
	f, err := folderOf("checkReport", v)
	if err != nil || !in.first || in.vu.State() != nil {
		return err
	}
	in.run.output.wanted.Store(true)
	if f.Name == "" {
		return nil
	}
	return f.Check()
}

// report writes the folder of results and returns its path.
func (in *instance) report(v sobek.Value) (any, error) {
	f, err := folderOf("report", v)
	if err != nil {
		in.run.output.reported.Store(&reported{err: err})
		return nil, err
	}
	return in.write(f)
}

// write writes the folder and returns its path; undefined if the test used no broker. An error of
// the disk is not thrown: it is printed at the end, and changes the exit code.
func (in *instance) write(f report.Folder) (any, error) {
	r := in.run
	if in.vu.State() == nil || !r.ended(in.vu) {
		return nil, errTooEarly
	}
	if r.state.Load() == nil {
		return nil, nil // undefined in the script
	}
	named := *r.result()
	if f.Name == "" {
		f.Name = r.defaultName(named.Started)
		f = f.Free()
	}
	done := &reported{ledger: r.savedLedger(), result: &named}
	defer r.output.reported.Store(done)
	saved, err := f.Save(&named, done.ledger)
	done.err = err
	if err == nil && saved != f {
		r.logger.Warnf("%s exists already: the results are in %s", f.Path(), saved.Path())
	}
	named.Name = cmp.Or(saved.Name, f.Name)
	if saved.Name == "" {
		return nil, nil
	}
	done.folder = saved.Path()
	if so := r.output.meanwhile.Load(); so != nil {
		if err := os.RemoveAll(so.Path()); err != nil {
			r.logger.WithError(err).Warn("the results so far could not be removed")
		}
	}
	return done.folder, nil
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
	folder := r.output.meanwhile.Load()
	var warned sync.Once
	write := func(err error) {
		if err != nil {
			warned.Do(func() { r.logger.WithError(err).Warn("the results so far could not be written") })
		}
	}
	update := func() { write(folder.WriteMeanwhile(r.unmeasured(), r.savedLedger())) }
	update() // makes the folder
	write(r.collector.RecordTo(filepath.Join(folder.Path(), report.RecordingFile)))
	return samples.Each(func(time.Time) { update() })
}

// unwritten returns the error if requested results are not all written.
func (r *run) unwritten() error {
	if done := r.output.reported.Load(); done != nil {
		return done.err
	}
	if r.output.wanted.Load() && r.state.Load() != nil && !r.output.quiet {
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
	var archive *lib.Archive
	if runner := r.state.Load().execution.Test.Runner; runner != nil {
		archive = runner.MakeArchive()
	}
	if archive == nil || archive.FilenameURL == nil {
		return ""
	}
	if base := path.Base(archive.FilenameURL.Path); base != "-" && base != "/" && base != "." {
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
	} else if r.processes.shared {
		name += fmt.Sprintf("-%08x", r.Instance())
	}
	return report.Sanitise(name)
}

// thinned reports whether k6 has fewer samples of a latency than there were.
func (r *run) thinned() bool {
	for _, trend := range r.flusher.trends {
		if trend.Thinned {
			return true
		}
	}
	return slices.ContainsFunc(executors.Totals(), func(t executors.ScenarioTotals) bool { return t.Thinned })
}

// printTable prints the table after k6's own summary, and the path of the results.
func (r *run) printTable() {
	if r.state.Load() == nil || r.output.quiet {
		return
	}
	err := report.Text(os.Stdout, r.result())
	if r.thinned() {
		fmt.Printf(
			"  (k6's summary has up to %d samples a second of each latency; this table and the thresholds have all)\n\n",
			samples.Budget,
		)
	}
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
