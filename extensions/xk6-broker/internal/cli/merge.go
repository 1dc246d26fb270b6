package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/compare"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

var errInvalid = errors.New("the result is not valid: see its verdict (--allow-invalid lets it pass)")

// merging are the options of merge.
type merging struct {
	out          string
	overwrite    bool
	processes    int
	failIf       []string
	allowInvalid bool
	allowKilled  bool
	absent       []string // processes that are known to be missing
}

func newMerge(gs *state.GlobalState) *cobra.Command {
	var o merging
	c := &cobra.Command{
		Use:   "merge DIR... -o OUT",
		Short: "Join the results of the processes of one test into one",
		Long: "Joins what several k6 processes of one test left behind, one folder each: those that were given the same BROKER_RUN.\n" +
			"Distributions, counts and the account of every message are exact. The exit code is 99 where the whole is not valid, or a --fail-if holds.",
		Example: "  BROKER_RUN=nightly-17 ./k6 run --execution-segment 0:1/2 script.js     # on one machine\n" +
			"  BROKER_RUN=nightly-17 ./k6 run --execution-segment 1/2:1 script.js     # on the other\n" +
			"  k6 x broker merge results/one results/two -o results/nightly-17 --processes 2 --fail-if 'lost > 0'",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(gs, args) },
	}
	o.flags(c)
	return c
}

// flags are those of whatever merges.
func (o *merging) flags(c *cobra.Command) {
	c.Flags().StringVarP(&o.out, "out", "o", "", "the folder of the joined result")
	c.Flags().BoolVar(&o.overwrite, "overwrite", false, "replace the results in the folder if there are any")
	c.Flags().IntVar(&o.processes, "processes", 0, "how many processes the test had (default what BROKER_PROCESSES said): only if all are here, "+
		"what none of them received can be called lost")
	c.Flags().BoolVar(&o.allowKilled, "allow-killed", false, "processes that were killed were to be: that they ended before their time is no reason against the result")
	c.Flags().StringArrayVar(&o.failIf, "fail-if", nil, "fail where this holds, such as 'lost > 0' or 'e2e_latency p99 > 50ms'; may be given several times")
	c.Flags().BoolVar(&o.allowInvalid, "allow-invalid", false, "a result that is not valid is no failure")
	_ = c.MarkFlagRequired("out") // the flag is there
}

func (o *merging) run(gs *state.GlobalState, dirs []string) error {
	conditions, err := o.check()
	if err != nil {
		return err
	}
	folder := report.Folder{Dir: filepath.Dir(o.out), Name: filepath.Base(o.out), Overwrite: o.overwrite}
	if err := folder.Check(); err != nil {
		return err
	}
	return o.join(gs, dirs, folder, conditions)
}

// join merges folders into one, and judges the whole.
func (o *merging) join(gs *state.GlobalState, dirs []string, folder report.Folder, conditions []compare.Condition) error {
	parts := make([]verdict.Part, len(dirs))
	for i, dir := range dirs {
		progress(gs, i, len(dirs), dir)
		var err error
		if parts[i], err = report.ReadPart(dir); err != nil {
			return err
		}
	}
	merged, err := verdict.Merge(parts, verdict.Siblings{Processes: o.processes, Absent: o.absent, Killed: o.allowKilled})
	if err != nil {
		return err
	}
	merged.Name = folder.Name
	if err := folder.Write(merged, nil); err != nil {
		return err
	}
	if err := report.Text(gs.Stdout, merged); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(gs.Stdout, "  results: %s\n", filepath.Join(folder.Path(), report.PageFile))
	var findings []compare.Finding
	for _, condition := range conditions {
		findings = append(findings, condition.Judge(merged)...)
	}
	switch failed := tell(gs, findings); {
	case failed:
		return errext.WithExitCodeIfNone(errCondition, exitcodes.ThresholdsHaveFailed)
	case !merged.Verdict.Valid && !o.allowInvalid:
		return errext.WithExitCodeIfNone(errInvalid, exitcodes.ThresholdsHaveFailed)
	}
	return nil
}

// check finds the mistakes that can be known before anything is read.
func (o *merging) check() ([]compare.Condition, error) {
	if o.processes < 0 || o.processes == 1 {
		return nil, fmt.Errorf("--processes %d: give how many processes the test had, 2 or more", o.processes)
	}
	conditions, err := parseConditions(o.failIf)
	if err != nil {
		return nil, err
	}
	for _, c := range conditions {
		if c.Relative() {
			return nil, fmt.Errorf("--fail-if %q: a merged result has nothing to be compared with: give a duration or a number for the limit", c.Text)
		}
	}
	return conditions, nil
}
