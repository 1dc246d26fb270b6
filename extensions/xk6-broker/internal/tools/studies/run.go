package studies

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// Run runs a study, or resumes it.
type Run struct {
	cells.Study
	Data    *Study
	Name    string   // of the folder if none is given
	Only    []string // the names of tests; none for all
	Repeat  int      // 0 for the study's own
	Command string   // for the page

	runs []cells.Outcome // in the order of time
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
	all, err := r.Data.plan()
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
	return r.runAll(ctx, all)
}

// runAll runs the cells without a result. The page has those with a result from the start.
func (r *Run) runAll(ctx context.Context, all []cells.Cell) error {
	var left []cells.Cell
	for _, c := range all {
		if o, ok := r.Done(c); ok {
			r.runs = append(r.runs, o)
		} else {
			left = append(left, c)
		}
	}
	if err := r.write(); err != nil {
		return err
	}
	failed := 0
	for i, c := range left {
		if !r.pace(&c) {
			continue // the page names it
		}
		c.Label = fmt.Sprintf("[%d/%d] %s", i+1, len(left), c.Label)
		o, err := r.Cell(ctx, c)
		if err != nil {
			return err
		}
		if o.Result == nil {
			failed++
		}
		r.runs = append(r.runs, o)
		if err := r.write(); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("cells without a result: %d; --resume runs them again", failed)
	}
	return nil
}

// pace sets the rate of a run that has one; false if the rate is not known.
func (r *Run) pace(c *cells.Cell) bool {
	for _, t := range r.Data.Tests {
		if t.Rate == nil || !slices.ContainsFunc(t.Cells, func(each *Cell) bool { return each.row == c.Row }) {
			continue
		}
		rate := r.rate(t.Rate)
		c.Settings = maps.Clone(c.Settings)
		c.Settings["RATE"] = strconv.Itoa(rate)
		return rate > 0
	}
	return true
}

// rate returns messages per second; 0 if no valid run has the number.
func (r *Run) rate(p *Pace) int {
	most, t := 0.0, r.Data.test(p.Test)
	for _, c := range t.Cells {
		most = max(most, r.number(c, t.Columns[0]).Median)
	}
	return int(p.Share * most)
}

// plan returns the runs: test after test, and within a test each repetition has all cells,
// shuffled, so that drift does not look like the effect of a setting.
func (s *Study) plan() (all []cells.Cell, err error) {
	random := rand.New(rand.NewPCG(1, 0)) //gosec:disable G404 -- an order, and no secret
	missing := ""
	for _, t := range s.Tests {
		for repetition := 1; repetition <= s.Repeat; repetition++ {
			for _, i := range random.Perm(len(t.Cells)) {
				if name := t.Cells[i].missing(); name != "" {
					missing = name
				} else {
					all = append(all, t.run(i, repetition))
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing can be run: %s has no value: set the variables of `scripts/broker env %s`",
			missing, strings.Join(s.Brokers, " "))
	}
	return all, nil
}

// run returns a repetition of a cell.
func (t *Test) run(i, repetition int) cells.Cell {
	c := t.Cells[i]
	return cells.Cell{
		Folder: report.Sanitise(fmt.Sprintf("%s-%d-%d-%s", t.Name, i+1, repetition, c.Name)),
		Label:  fmt.Sprintf("%s: %s, repetition %d", t.Name, c.Name, repetition),
		Row:    c.row, Repetition: repetition, Script: t.Script, Settings: c.Settings, Columns: t.Columns,
	}
}

// facts returns the facts of the study, or an error if a script does not read a setting.
func (r *Run) facts(ctx context.Context) (cells.Facts, error) {
	facts := cells.Facts{"repeat": fmt.Sprint(r.Data.Repeat)}
	for _, t := range r.Data.Tests {
		set, hash := cells.Settings{}, sha256.New()
		if t.Rate != nil {
			set["RATE"] = fmt.Sprint(*t.Rate)
		}
		for _, c := range t.Cells {
			maps.Copy(set, c.Settings)
			fmt.Fprintln(hash, c.Name, map[string]string(c.Settings))
		}
		facts["cells of "+t.Name] = hex.EncodeToString(hash.Sum(nil))
		script, err := cells.Script(ctx, t.Script, set.Names())
		if err != nil {
			return nil, fmt.Errorf("test %s: %w", t.Name, err)
		}
		maps.Copy(facts, script)
	}
	return facts, nil
}

// runsOf returns the runs of cells.
func (r *Run) runsOf(some ...*Cell) (all []cells.Outcome) {
	for _, o := range r.runs {
		if slices.ContainsFunc(some, func(c *Cell) bool { return o.Row == c.row }) {
			all = append(all, o)
		}
	}
	return all
}

// number reads a column of a cell: of valid runs. Counts and rates are doubtful if only the
// latencies of a run are not valid.
func (r *Run) number(cell *Cell, c *cells.Column) measure.Spread {
	var sound []cells.Outcome
	doubt := ""
	for _, o := range r.runsOf(cell) {
		switch {
		case o.Valid():
			sound = append(sound, o)
		case c.Unit != "ns" && o.Result != nil && o.Result.Verdict.Account:
			sound = append(sound, o)
			doubt = o.Verdict()
		}
	}
	s := c.Spread(sound...)
	s.TooLow = cmp.Or(s.TooLow, doubt)
	return s
}
