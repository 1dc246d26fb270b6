package studies

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Run runs a study, or goes on with it.
type Run struct {
	Study   *Study
	Runner  sweep.Runner // of the cells; their script is the test's
	Folder  string
	Seed    uint64   // of the order within each repetition
	Only    []string // the names of tests; all where there are none
	Command string   // that was given, for the page
	Scale   float64  // that the study was read with
	Out     io.Writer

	scripts map[string]*sweep.Script
	journal *sweep.Journal
	planned []planned
	known   []sweep.Outcome // what this process has run or read
}

// planned is a run of a cell.
type planned struct {
	sweep.Cell
	test, cell int
}

// Prepare finds what is wrong before anything runs: a test that does not exist, a script that cannot be read or never reads a setting, a folder that is
// taken or, with resume, of another study.
func (r *Run) Prepare(ctx context.Context, resume bool) error {
	for _, name := range r.Only {
		if r.Study.test(name) == nil {
			return fmt.Errorf("--only %s: there is no such test: there are %s", name, strings.Join(r.Study.names(), ", "))
		}
	}
	r.plan()
	if err := r.inspect(ctx); err != nil {
		return err
	}
	if !slices.ContainsFunc(r.planned, func(p planned) bool { return r.wanted(p) && r.why(p) == "" }) {
		for _, p := range r.planned {
			if r.wanted(p) {
				return fmt.Errorf("nothing can be run: %s", r.why(p))
			}
		}
	}
	var err error
	r.journal, err = sweep.Open(r.Folder, r.asked(), resume)
	return err
}

// Close lets other processes go on with the study.
func (r *Run) Close() error { return r.journal.Close() }

// plan lists all runs: test after test, for only the rows of one table are compared with one another, and within a test each repetition holds all cells,
// shuffled, so that what drifts with time does not look like the effect of a setting.
func (r *Run) plan() {
	random := rand.New(rand.NewPCG(r.Seed, 0)) //gosec:disable G404 -- an order that can be had again, and no secret
	for t, test := range r.Study.Tests {
		for repetition := 1; repetition <= r.Study.Repeat; repetition++ {
			for _, c := range random.Perm(len(test.Cells)) {
				index := len(r.planned) + 1
				folder := report.Sanitise(fmt.Sprintf("%04d-%s-%s", index, test.Name, test.Cells[c].Name))
				r.planned = append(r.planned, planned{sweep.Cell{Index: index, Repetition: repetition, Folder: folder}, t, c})
			}
		}
	}
}

func (r *Run) wanted(p planned) bool {
	return len(r.Only) == 0 || slices.Contains(r.Only, r.Study.Tests[p.test].Name)
}

// why says why a cell cannot be run, as far as that is known beforehand; "" where it can.
func (r *Run) why(p planned) string {
	for _, s := range r.settingsOf(p) {
		if s.None {
			return fmt.Sprintf("%s of %q has no value: a variable of the environment is not set, such as those that `scripts/broker env` prints of %s",
				s.Name, r.Study.Tests[p.test].Cells[p.cell].Name, strings.Join(r.Study.Brokers, " "))
		}
	}
	return ""
}

func (r *Run) settingsOf(p planned) []Setting {
	return r.Study.Tests[p.test].Cells[p.cell].all()
}

func (r *Run) path(t *Test) string {
	return filepath.Join(r.Study.Folder, filepath.FromSlash(t.Script))
}

// inspect reads the scripts.
func (r *Run) inspect(ctx context.Context) error {
	r.scripts = map[string]*sweep.Script{}
	for i := range r.Study.Tests {
		test := &r.Study.Tests[i]
		if r.scripts[test.Script] == nil {
			script, err := sweep.Inspect(ctx, r.Runner.K6, r.path(test))
			if err != nil {
				return fmt.Errorf("test %s: script %s: %w", test.Name, test.Script, err)
			}
			r.scripts[test.Script] = script
		}
		for _, c := range test.Cells {
			for _, s := range c.all() {
				if script := r.scripts[test.Script]; !script.Reads(s.Name) {
					return fmt.Errorf("test %s: %s never reads %s: it reads %s", test.Name, test.Script, s.Name, strings.Join(script.Names, ", "))
				}
			}
		}
	}
	return nil
}

// asked is what makes this study the one that it is.
func (r *Run) asked() []sweep.Fact {
	facts := []sweep.Fact{{What: "study", Is: r.Study.Title}, {What: "scale", Is: strconv.FormatFloat(r.Scale, 'g', -1, 64)}, {What: sweep.SeedFact, Is: strconv.FormatUint(r.Seed, 10)}, {What: "repeat", Is: strconv.Itoa(r.Study.Repeat)}}
	for i := range r.Study.Tests {
		test := &r.Study.Tests[i]
		facts = append(facts, sweep.Fact{What: "test " + test.Name, Is: test.fingerprint()})
	}
	for i := range r.Study.Tests {
		name := r.Study.Tests[i].Script
		if fact := (sweep.Fact{What: "script " + name, Is: r.scripts[name].Hash}); !slices.Contains(facts, fact) {
			facts = append(facts, fact)
		}
	}
	return append(facts, r.surroundings()...)
}

// fingerprint changes where what is run changes. What was published, and the columns, may be put right afterwards.
func (t *Test) fingerprint() string {
	sum := sha256.New()
	for _, c := range t.Cells {
		_, _ = fmt.Fprintf(sum, "%q %d %d", c.Name, len(c.Processes), len(c.Before)) // a hash takes all that is written
		for _, p := range c.Processes {
			if p.Kill != nil {
				_, _ = fmt.Fprintf(sum, "%v;", p.Kill.After)
			}
		}
		for _, s := range c.all() {
			_, _ = fmt.Fprintf(sum, "%q=%q %v %t;", s.Name, anyPort(s.Value), s.From, s.None)
		}
	}
	return fmt.Sprintf("%d cells, %x", len(t.Cells), sum.Sum(nil)[:6])
}

// Do runs what has no result yet, and writes the page after each cell. When stop is closed it ends after the running cell, and when ctx ends, with it.
func (r *Run) Do(ctx context.Context, stop <-chan struct{}) (failed int, err error) {
	r.Runner.Folder = filepath.Join(r.Folder, sweep.CellsFolder)
	left := slices.DeleteFunc(slices.Clone(r.planned), func(p planned) bool {
		if o, done := r.journal.Outcome(p.Cell); done {
			r.known = append(r.known, o)
			return true
		}
		return !r.wanted(p) || r.why(p) != ""
	})
	if err := r.write(); err != nil {
		return 0, err
	}
	var spent time.Duration
	for i, p := range left {
		select {
		case <-stop:
			return failed, sweep.ErrStopped
		default:
		}
		r.tell(p, i, len(left), spent)
		o, err := r.one(ctx, p)
		if err == nil {
			err = r.journal.Add(o)
		}
		if err != nil {
			return failed, err
		}
		if o.Cut {
			return failed, sweep.ErrStopped
		}
		if o.Result == nil {
			failed++
		}
		spent += o.Ended.Sub(o.Started)
		r.known = append(r.known, o)
		_, _ = fmt.Fprintf(r.Out, "  %s\n", r.summary(&r.Study.Tests[p.test], o)) // a terminal that is gone is no reason to end
		if err := r.write(); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// one runs a cell.
func (r *Run) one(ctx context.Context, p planned) (sweep.Outcome, error) {
	test := &r.Study.Tests[p.test]
	c := &test.Cells[p.cell]
	cell := p.Cell
	settings, missing := r.settings(c.Settings)
	before, missingBefore := r.settings(c.Before)
	processes := make([]sweep.Cell, len(c.Processes))
	for i, p := range c.Processes {
		processes[i].Kill = p.Kill
		var err error
		processes[i].Settings, err = r.settings(p.Settings)
		missingBefore = errors.Join(missingBefore, err)
	}
	if missing := errors.Join(missing, missingBefore); missing != nil { // which is the cell's failure, and not the study's
		now := time.Now()
		return sweep.Outcome{Cell: cell, Error: missing.Error(), ExitCode: -1, Started: now, Ended: now}, nil //nolint:nilerr // it is in the outcome
	}
	cell.Settings = settings
	r.Runner.Script = r.path(test)
	if c.Before != nil {
		if o, err := r.before(ctx, cell, before); err != nil || o.Cut || o.Error != "" {
			o.Cell, o.Result = cell, nil
			return o, err
		}
	}
	if c.Processes != nil {
		return r.together(ctx, cell, processes)
	}
	return r.Runner.Run(ctx, cell)
}

// settings are those of a cell, with what other tests have measured.
func (r *Run) settings(all []Setting) (values sweep.Values, err error) {
	for _, s := range all {
		value := s.Value
		if s.From != nil {
			n, err := r.measured(s.From)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			value = strconv.FormatFloat(n, 'f', -1, 64)
		}
		values = append(values, sweep.Value{Name: s.Name, Value: value})
	}
	return values, nil
}

func (r *Run) measured(m *Measure) (float64, error) {
	table := r.table(m.Test)
	at := slices.IndexFunc(table.Columns, func(c Column) bool { return c.Title == m.Column })
	greatest, found, invalid := 0.0, false, 0
	for _, g := range table.Groups {
		for _, row := range g.Rows {
			switch v := row.Values[at]; {
			case !v.Known || m.Cell != "" && row.Name != m.Cell:
			case !row.stands(table.Columns[at].Measure):
				invalid++
			default:
				greatest, found = max(greatest, v.Median), true
			}
		}
	}
	if !found {
		of := "of any cell"
		if m.Cell != "" {
			of = fmt.Sprintf("of %q", m.Cell)
		}
		if invalid > 0 {
			return 0, fmt.Errorf("the test %s has measured no %s %s by runs that are all valid", m.Test, m.Column, of)
		}
		return 0, fmt.Errorf("the test %s has measured no %s %s yet", m.Test, m.Column, of)
	}
	return greatest * m.Times / table.Columns[at].scale(), nil
}

func (r *Run) table(name string) Table {
	t := slices.IndexFunc(r.Study.Tests, func(t Test) bool { return t.Name == name })
	var outcomes []Outcome
	var notRun []NotRun
	for _, p := range r.planned {
		if p.test != t {
			continue
		}
		at := slices.IndexFunc(r.known, func(o sweep.Outcome) bool { return o.Cell.Index == p.Index })
		switch why := r.why(p); {
		case at >= 0:
			outcomes = append(outcomes, Outcome{r.known[at], p.cell})
		case why != "" && p.Repetition == 1:
			notRun = append(notRun, NotRun{r.Study.Tests[t].Cells[p.cell].Name, why})
		}
	}
	return tabulate(&r.Study.Tests[t], outcomes, notRun)
}

func (r *Run) tables() []Table {
	all := make([]Table, 0, len(r.Study.Tests))
	for _, name := range r.Study.names() {
		if t := r.table(name); len(t.Groups)+len(t.NotRun) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// tell says what runs next, and how long the rest may take by what was run so far.
func (r *Run) tell(p planned, done, of int, spent time.Duration) {
	test := &r.Study.Tests[p.test]
	left := ""
	if done > 0 {
		left = fmt.Sprintf(", about %v left", (spent / time.Duration(done) * time.Duration(of-done)).Round(time.Second))
	}
	_, _ = fmt.Fprintf(r.Out, "[%d/%d%s] %s: %s, repetition %d of %d\n", done+1, of, left, test.Name, test.Cells[p.cell].Name, p.Repetition, r.Study.Repeat)
}

// summary is what a run came to, in a line.
func (r *Run) summary(t *Test, o sweep.Outcome) string {
	if o.Result == nil {
		return "failed: " + o.Error
	}
	var parts []string
	for i := range t.Columns {
		if v, _, err := t.Columns[i].ofRun(o.Result); err == nil {
			parts = append(parts, t.Columns[i].Title+" "+t.Columns[i].Measure.Show(v))
		}
	}
	if !o.Result.Verdict.Valid {
		parts = append(parts, "not valid: "+reason.Codes(o.Result.Verdict.Invalid()))
	}
	return strings.Join(parts, ", ")
}
