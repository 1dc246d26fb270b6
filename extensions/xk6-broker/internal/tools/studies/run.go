package studies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
)

// Run runs a study, or resumes it.
type Run struct {
	cells.Study
	Data    *Study
	Name    string   // of the folder if none is given
	Only    []string // the names of tests; none for all
	Repeat  int      // 0 for the study's own
	Seed    uint64   // of the order within each repetition
	Command string   // for the page

	// Settings are shown as columns of the table of all runs.
	Settings []string
	// Extend adds to the page; it may be nil.
	Extend func(page *cells.Page, runs []cells.Outcome)

	planned map[string]planned // by the folder
	runs    []cells.Outcome
}

// planned is the row of a run.
type planned struct {
	test *Test
	cell *Cell
}

// Do runs the cells without a result. The page is written after each.
func (r *Run) Do(ctx context.Context) error {
	if r.Repeat != 0 {
		r.Data.Repeat = r.Repeat
	}
	if len(r.Only) > 0 {
		unwanted := func(t *Test) bool { return !slices.Contains(r.Only, t.Name) }
		r.Data.Tests = slices.DeleteFunc(r.Data.Tests, unwanted)
	}
	if err := r.Data.complete(); err != nil {
		return err
	}
	all, err := r.plan()
	if err != nil {
		return err
	}
	facts, err := r.facts(ctx)
	if err != nil {
		return err
	}
	if err := r.Open(r.Name, facts); err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // the process ends
	return r.Each(ctx, all, func(runs []cells.Outcome) error {
		r.runs = runs
		return r.write()
	})
}

// plan returns the runs: test after test, and within a test each repetition has all cells,
// shuffled, so that drift does not look like the effect of a setting.
func (r *Run) plan() ([]cells.Cell, error) {
	random := rand.New(rand.NewPCG(r.Seed, 0)) //gosec:disable G404 -- an order, and no secret
	r.planned = map[string]planned{}
	var all []cells.Cell
	lacking := ""
	for _, t := range r.Data.Tests {
		for repetition := 1; repetition <= r.Data.Repeat; repetition++ {
			for _, i := range random.Perm(len(t.Cells)) {
				if name := t.Cells[i].lacks(); name != "" {
					lacking = name
					continue
				}
				c := t.run(i, repetition)
				r.planned[c.Folder] = planned{t, t.Cells[i]}
				all = append(all, c)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing can be run: %s has no value: set the variables of `scripts/broker env %s`",
			lacking, strings.Join(r.Data.Brokers, " "))
	}
	return all, nil
}

// run returns a repetition of a cell.
func (t *Test) run(i, repetition int) cells.Cell {
	cell := t.Cells[i]
	c := cells.Cell{
		Folder:     report.Sanitise(fmt.Sprintf("%s-%d-%d-%s", t.Name, i+1, repetition, cell.Name)),
		Label:      fmt.Sprintf("%s: %s, repetition %d", t.Name, cell.Name, repetition),
		Repetition: repetition, Script: t.Script,
	}
	for _, name := range slices.Sorted(maps.Keys(cell.Settings)) {
		c.Settings = append(c.Settings, cells.Value{Name: name, Value: string(cell.Settings[name])})
	}
	for _, column := range t.Columns {
		c.Columns = append(c.Columns, column.Column)
	}
	return c
}

// facts returns the facts of the study, or an error if a script does not read a setting.
func (r *Run) facts(ctx context.Context) (cells.Facts, error) {
	facts := cells.Facts{"--seed": fmt.Sprint(r.Seed), "repeat": fmt.Sprint(r.Data.Repeat)}
	for _, t := range r.Data.Tests {
		set, hash := Settings{}, sha256.New()
		for _, c := range t.Cells {
			maps.Copy(set, c.Settings)
			fmt.Fprintln(hash, c.Name, c.Settings)
		}
		facts["cells of "+t.Name] = hex.EncodeToString(hash.Sum(nil))
		script, err := cells.Script(ctx, t.Script, slices.Sorted(maps.Keys(set)))
		if err != nil {
			return nil, fmt.Errorf("test %s: %w", t.Name, err)
		}
		maps.Copy(facts, script)
	}
	return facts, nil
}

// runsOf returns the runs of a cell.
func (r *Run) runsOf(c *Cell) (all []cells.Outcome) {
	for _, o := range r.runs {
		if r.planned[o.Folder].cell == c {
			all = append(all, o)
		}
	}
	return all
}
