package js

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/report"
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
	f := report.Folder{
		Dir: o.text("dir", reportDir), Name: o.text("name", ""), Overwrite: o.boolean("overwrite"),
	}
	if err := o.done(); err != nil {
		return report.Folder{}, err
	}
	if f.Name != report.Sanitise(f.Name) {
		return report.Folder{}, fmt.Errorf(`%s: option "name": %q is no name for a folder: use letters, digits, '.', '_' and '-'`, of, f.Name)
	}
	return f, nil
}

// checkReport fails in init where report would fail in handleSummary: an hour of test later is late to learn that a folder is taken.
func (in *instance) checkReport(v sobek.Value) error {
	f, err := reportOptions("checkReport", v)
	if err != nil || f.Name == "" || in.vu.State() != nil {
		return err
	}
	return f.Check()
}

// report writes the folder of results and returns its path; nothing is written where the test used no broker.
func (in *instance) report(v sobek.Value) (any, error) {
	f, err := reportOptions("report", v)
	if err != nil {
		return nil, err
	}
	r := in.run
	if in.vu.State() == nil || !r.over.Load() {
		return nil, errTooEarly
	}
	if r.state.Load() == nil {
		return nil, nil //nolint:nilnil // undefined is what the script gets
	}
	result := *r.result()
	if f.Name == "" {
		f = unused(f, r.scriptName()+"-"+result.Started.UTC().Format(nameTime))
	}
	if err := f.Check(); errors.Is(err, report.ErrExists) { // it appeared while the test ran: the results are not lost for that
		r.logger.WithError(err).Warn("the results go to another folder")
		f = unused(f, f.Name+"-"+time.Now().UTC().Format(nameTime))
	}
	result.Name = f.Name
	ledger := bytes.Buffer{}
	if l := r.Ledger(); l != nil {
		if err := l.Write(&ledger); err != nil {
			return nil, err
		}
	}
	if err := f.Write(&result, r.collector.Logs(), ledger.Bytes()); err != nil {
		return nil, err
	}
	r.reportPath.Store(f.Path())
	return f.Path(), nil
}

// unused gives the folder a name that is not taken.
func unused(f report.Folder, name string) report.Folder {
	f.Overwrite = false
	f.Name = report.Sanitise(name)
	for i := 2; errors.Is(f.Check(), report.ErrExists); i++ {
		f.Name = report.Sanitise(fmt.Sprintf("%s-%d", name, i))
	}
	return f
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

// scriptName is the name of the script's file without its extension.
func (r *run) scriptName() string {
	base := r.scriptFile()
	if name := report.Sanitise(strings.TrimSuffix(base, path.Ext(base))); name != "" && name != "_" {
		return name
	}
	return "run"
}

// printReport prints the table of the run, and where its results are.
func (r *run) printReport() error {
	if err := report.Text(os.Stdout, r.result()); err != nil {
		return err
	}
	_, _ = fmt.Fprint(os.Stdout, "  (k6's summary is made of some samples of these latencies, this table of all)\n\n")
	if folder, ok := r.reportPath.Load().(string); ok {
		_, err := fmt.Fprintf(os.Stdout, "  results: %s\n\n", path.Join(folder, report.PageFile))
		return err
	}
	return nil
}
