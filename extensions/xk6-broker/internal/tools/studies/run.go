package studies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Run runs a study, or resumes it.
type Run struct {
	Study   *Study
	Runner  sweep.Runner // of the cells; the script is the test's
	Folder  string
	Seed    uint64   // of the order within each repetition
	Only    []string // the names of tests; none for all
	Command string   // for the tables
	Scale   float64
	Out     io.Writer

	scripts map[string]*sweep.Script
	journal *sweep.Journal
	planned []planned
	done    []outcome
}

// planned is a run of a cell.
type planned struct {
	sweep.Cell
	test *Test
	cell *Cell
}

type outcome struct {
	planned
	sweep.Outcome
}

// Prepare plans the runs: test after test, and within a test each repetition has all cells, shuffled. It returns an error
// if a script does not read a setting, or if the folder is taken or, with resume, of another study.
func (r *Run) Prepare(ctx context.Context, resume bool) error {
	names := make([]string, len(r.Study.Tests))
	for i, t := range r.Study.Tests {
		names[i] = t.Name
	}
	for _, name := range r.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only %s: there is no such test: there are %s", name, strings.Join(names, ", "))
		}
	}
	random := rand.New(rand.NewPCG(r.Seed, 0)) //gosec:disable G404 -- an order, and no secret
	r.scripts = map[string]*sweep.Script{}
	for i := range r.Study.Tests {
		t := &r.Study.Tests[i]
		if err := r.inspect(ctx, t); err != nil {
			return err
		}
		for repetition := 1; repetition <= r.Study.Repeat; repetition++ {
			for _, c := range random.Perm(len(t.Cells)) {
				index := len(r.planned) + 1
				folder := report.Sanitise(fmt.Sprintf("%04d-%s-%s", index, t.Name, t.Cells[c].Name))
				r.planned = append(r.planned, planned{sweep.Cell{Index: index, Repetition: repetition, Folder: folder}, t, &t.Cells[c]})
			}
		}
	}
	if !slices.ContainsFunc(r.planned, func(p planned) bool { return r.wanted(p) && p.cell.lacks() == "" }) {
		i := slices.IndexFunc(r.planned, r.wanted)
		return fmt.Errorf("nothing can be run: %s", r.why(r.planned[i].cell))
	}
	facts, err := r.asked()
	if err != nil {
		return err
	}
	r.journal, err = sweep.Open(r.Folder, facts, resume)
	return err
}

// Close unlocks the study.
func (r *Run) Close() error { return r.journal.Close() }

func (r *Run) wanted(p planned) bool {
	return len(r.Only) == 0 || slices.Contains(r.Only, p.test.Name)
}

func (c *Cell) all() []Settings {
	all := []Settings{c.Settings}
	if c.Before != nil {
		all = append(all, c.Before)
	}
	for _, p := range c.Processes {
		all = append(all, p.Settings)
	}
	return all
}

// lacks returns a setting of the cell without a value; "" if it can be run.
func (c *Cell) lacks() string {
	for _, settings := range c.all() {
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			if v := settings[name]; v == nil || v == "" {
				return name
			}
		}
	}
	return ""
}

func (r *Run) why(c *Cell) string {
	return fmt.Sprintf("%s of %q has no value: set the variables that `scripts/broker env %s` prints", c.lacks(), c.Name, strings.Join(r.Study.Brokers, " "))
}

func (r *Run) path(t *Test) string {
	return filepath.Join(r.Study.Folder, filepath.FromSlash(t.Script))
}

// inspect checks that the script of a test reads every setting.
func (r *Run) inspect(ctx context.Context, t *Test) error {
	script, ok := r.scripts[t.Script]
	if !ok {
		var err error
		if script, err = sweep.Inspect(ctx, r.Runner.K6, r.path(t)); err != nil {
			return fmt.Errorf("test %s: script %s: %w", t.Name, t.Script, err)
		}
		r.scripts[t.Script] = script
	}
	for i := range t.Cells {
		for _, settings := range t.Cells[i].all() {
			for name := range settings {
				if !script.Reads(name) {
					return fmt.Errorf("test %s: %s never reads %s: it reads %s", t.Name, t.Script, name, strings.Join(script.Names, ", "))
				}
			}
		}
	}
	return nil
}

// localPort is the port of a local broker, which may change until a study is resumed.
var localPort = regexp.MustCompile(`(127\.0\.0\.1|localhost|\[::1\]):\d+`)

// asked returns the facts of the study: what is run, not what was published.
func (r *Run) asked() ([]sweep.Fact, error) {
	facts := []sweep.Fact{
		{What: "study", Is: r.Study.Title},
		{What: "scale", Is: strconv.FormatFloat(r.Scale, 'g', -1, 64)},
		{What: sweep.SeedFact, Is: strconv.FormatUint(r.Seed, 10)},
		{What: "repeat", Is: strconv.Itoa(r.Study.Repeat)},
	}
	for _, t := range r.Study.Tests {
		facts = append(facts, sweep.Fact{What: "script of " + t.Name, Is: r.scripts[t.Script].Hash})
		for i := range t.Cells {
			c := t.Cells[i]
			c.Published = nil
			text, err := json.Marshal(c)
			if err != nil {
				return nil, err
			}
			facts = append(facts, sweep.Fact{What: "cell " + c.Name + " of " + t.Name, Is: sweep.Shown(localPort.ReplaceAllString(string(text), "$1"))})
		}
	}
	return facts, nil
}

// Do runs the cells without a result, and returns how many failed. When stop is closed it ends after the running cell, and
// when ctx ends, with it. The tables are written after each cell.
func (r *Run) Do(ctx context.Context, stop <-chan struct{}) (failed int, err error) {
	r.Runner.Folder = filepath.Join(r.Folder, sweep.CellsFolder)
	var left []planned
	var cells []sweep.Cell
	for _, p := range r.planned {
		if o, ok := r.journal.Outcome(p.Cell); ok {
			r.done = append(r.done, outcome{p, o})
		} else if r.wanted(p) && p.cell.lacks() == "" {
			left, cells = append(left, p), append(cells, p.Cell)
		}
	}
	if err := r.write(); err != nil {
		return 0, err
	}
	next := 0
	err = sweep.Each(ctx, stop, r.journal, cells, func(i int, spent time.Duration) {
		next = i
		p := left[i]
		r.say("[%d/%d%s] %s: %s, repetition %d of %d", i+1, len(left), sweep.TimeLeft(spent, i, len(left)), p.test.Name, p.cell.Name, p.Repetition, r.Study.Repeat)
	}, func(ctx context.Context, _ sweep.Cell) (sweep.Outcome, error) { return r.one(ctx, left[next]) }, func(o sweep.Outcome) error {
		if o.Result == nil {
			failed++
		}
		r.done = append(r.done, outcome{left[next], o})
		r.say("  %s", summary(left[next].test, o))
		return r.write()
	})
	return failed, err
}

func (r *Run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Out, format+"\n", args...) // a closed terminal does not end a study
}

// summary returns a run in one line.
func summary(t *Test, o sweep.Outcome) string {
	if o.Result == nil {
		return "failed: " + o.Error
	}
	var parts []string
	for i := range t.Columns {
		if n := t.Columns[i].of(o.Result); n.Known {
			parts = append(parts, t.Columns[i].Title+" "+n.Show(t.Columns[i].measure).Text)
		}
	}
	if !o.Result.Verdict.Valid {
		parts = append(parts, "not valid: "+reason.Codes(o.Result.Verdict.Invalid()))
	}
	return strings.Join(parts, ", ")
}

// one runs a cell: the run before it, and its process or processes.
func (r *Run) one(ctx context.Context, p planned) (sweep.Outcome, error) {
	runner := r.Runner
	runner.Script = r.path(p.test)
	fail := func(err error) (sweep.Outcome, error) { // which is the cell's failure, and not the study's
		now := time.Now()
		return sweep.Outcome{Cell: p.Cell, Error: err.Error(), ExitCode: -1, Started: now, Ended: now}, nil
	}
	cell := p.Cell
	var err error
	if cell.Settings, err = r.settings(p.cell.Settings); err != nil {
		return fail(err)
	}
	if p.cell.Before != nil {
		before := cell
		before.Folder += "-before"
		if before.Settings, err = r.settings(p.cell.Before); err != nil {
			return fail(err)
		}
		o, err := runner.Run(ctx, before)
		switch {
		case err != nil || o.Cut:
			return o, err
		case o.Error != "" || o.ExitCode != 0:
			return fail(fmt.Errorf("the run before it ended with exit code %d: %s: see %s in %s", o.ExitCode, o.Error, sweep.LogFile, before.Folder))
		}
	}
	if len(p.cell.Processes) == 0 {
		return runner.Run(ctx, cell)
	}
	runner.Reset, runner.BeforeCell, runner.Pause = "", "", 0 // they were run before
	runner.Keep = true                                        // a merge takes the ledgers
	var processes []sweep.Cell
	name := fmt.Sprintf("%s-%d", cell.Folder, time.Now().UnixNano())
	for i, process := range p.cell.Processes {
		one := sweep.Cell{Index: cell.Index, Repetition: cell.Repetition, Folder: fmt.Sprintf("%s-%d", cell.Folder, i+1), Run: name, Processes: len(p.cell.Processes)}
		if one.Settings, err = r.settings(process.Settings); err != nil {
			return fail(err)
		}
		if one.Kill, err = process.kill(); err != nil {
			return fail(err)
		}
		processes = append(processes, one)
	}
	return together(ctx, &runner, cell, processes)
}

// together runs a cell as several processes of one test, and merges their results.
func together(ctx context.Context, runner *sweep.Runner, cell sweep.Cell, processes []sweep.Cell) (sweep.Outcome, error) {
	all, errs := make([]sweep.Outcome, len(processes)), make([]error, len(processes))
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() { all[i], errs[i] = runner.Run(ctx, processes[i]) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return sweep.Outcome{}, err
	}
	joined := sweep.Outcome{Cell: cell, Started: all[0].Started, Ended: all[0].Ended}
	parts := make([]verdict.Part, len(all))
	for i, o := range all {
		joined.ExitCode, joined.Cut = max(joined.ExitCode, o.ExitCode), joined.Cut || o.Cut
		if o.Ended.After(joined.Ended) {
			joined.Ended = o.Ended
		}
		if o.Error != "" {
			joined.Error = fmt.Sprintf("process %d of %d: %s", i+1, len(processes), o.Error)
			return joined, nil
		}
		part, err := report.ReadPart(runner.Path(o.Cell))
		if err != nil {
			return joined, err
		}
		parts[i] = part
	}
	merged, err := verdict.Merge(parts, verdict.Siblings{Killed: slices.ContainsFunc(processes, func(c sweep.Cell) bool { return c.Kill > 0 })})
	if err != nil {
		joined.Error = err.Error()
		return joined, nil //nolint:nilerr // it is the cell's failure
	}
	merged.Name, joined.Result = cell.Folder, merged
	if err := os.RemoveAll(runner.Path(cell)); err != nil {
		return joined, fmt.Errorf("study: %w", err)
	}
	return joined, (report.Folder{Dir: runner.Folder, Name: cell.Folder}).Write(merged, nil)
}

// settings returns the values of settings, with those that other tests measured.
func (r *Run) settings(all Settings) (values sweep.Values, err error) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := text(all[name])
		if m, ok := all[name].(Measured); ok {
			n, err := r.measured(m)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			value = strconv.FormatFloat(n, 'f', -1, 64)
		}
		values = append(values, sweep.Value{Name: name, Value: value})
	}
	return values, nil
}

// measured returns the greatest median of the cells that are asked for. A rate only needs a valid account.
func (r *Run) measured(m Measured) (float64, error) {
	i := slices.IndexFunc(r.Study.Tests, func(t Test) bool { return t.Name == m.Test })
	t := &r.Study.Tests[i]
	c := &t.Columns[slices.IndexFunc(t.Columns, func(c Column) bool { return c.Title == m.Column })]
	greatest, found := 0.0, false
	for k := range t.Cells {
		if m.Cell != "" && t.Cells[k].Name != m.Cell {
			continue
		}
		runs := r.of(&t.Cells[k])
		if n := c.median(runs); c.sound(runs) && n.Known {
			greatest, found = max(greatest, n.Value), true
		}
	}
	if !found {
		return 0, fmt.Errorf("the test %s has no valid %s yet", m.Test, m.Column)
	}
	return greatest * m.Times / c.scale(), nil
}

// of returns the runs of a cell.
func (r *Run) of(c *Cell) (all []outcome) {
	for _, o := range r.done {
		if o.cell == c {
			all = append(all, o)
		}
	}
	return all
}
