// Package cli is the subcommand `k6 x broker`: it works on the folders that runs have left.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/compare"
)

// New makes the command.
func New(gs *state.GlobalState) *cobra.Command {
	root := &cobra.Command{
		Use: "broker", Short: "Work on the results of broker tests",
		Long: "Works on folders of results, as handleSummary of k6/x/broker writes them.",
	}
	root.AddCommand(newReport(gs), newCompare(gs), newMerge(gs), newCoordinator(gs), newSweep(gs), newCapacity(gs), newStudy(gs))
	return root
}

func newReport(gs *state.GlobalState) *cobra.Command {
	var part partOf
	c := &cobra.Command{
		Use: "report DIR...", Short: "Draw report.html anew from summary.json, or look at a part of the run",
		Long: "Draws report.html anew from summary.json. With --phase, or --from and --to, it prints the tables of that part of the run, beside the whole,\n" +
			"and draws a page of its own for it; the verdict stays the run's.",
		Example: "  k6 x broker report results/nightly\n  k6 x broker report results/nightly --from 30s --to 90s\n  k6 x broker report results/nightly --phase peak",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			part.from.given, part.to.given = cmd.Flags().Changed("from"), cmd.Flags().Changed("to")
			for i, dir := range args {
				progress(gs, i, len(args), dir)
				r, err := report.Read(dir)
				if err != nil {
					return err
				}
				if info, err := os.Stat(dir); err == nil && !info.IsDir() {
					dir = filepath.Dir(dir)
				}
				page := report.PageFile
				if part.asked() {
					if page, err = part.cut(dir, r); err != nil {
						return fmt.Errorf("%s: %w", dir, err)
					}
					if err := report.Text(gs.Stdout, r); err != nil {
						return err
					}
				}
				path := filepath.Join(dir, page)
				if err := report.WriteAtomic(path, func(w io.Writer) error { return report.HTML(w, r) }); err != nil {
					return err
				}
				_, _ = fmt.Fprintln(gs.Stdout, path)
			}
			return nil
		},
	}
	c.Flags().StringVar(&part.phase, "phase", "", "the phase of the run to look at")
	c.Flags().DurationVar(&part.from.at, "from", 0, "look at what came after this time from the start (default the start)")
	c.Flags().DurationVar(&part.to.at, "to", 0, "look at what came before this time from the start (default the end)")
	return c
}

// partOf is the part of a run that is asked for.
type partOf struct {
	phase    string
	from, to struct {
		at    time.Duration
		given bool
	}
}

func (p *partOf) asked() bool { return p.phase != "" || p.from.given || p.to.given }

// cut lets the part lead the result, and gives its page a name.
func (p *partOf) cut(dir string, r *result.Result) (page string, err error) {
	named := func(part string) string { return report.Sanitise("report-"+part) + filepath.Ext(report.PageFile) }
	switch {
	case p.phase != "" && (p.from.given || p.to.given):
		return "", errors.New("give --phase, or --from and --to")
	case p.phase != "" && len(r.Phases) == 0:
		return "", fmt.Errorf("there was no phase %q: the run has none", p.phase)
	case p.phase != "" && r.Phase(p.phase) == nil:
		return "", fmt.Errorf("there was no phase %q: there were %s", p.phase, strings.Join(r.PhaseNames(), ", "))
	case p.phase != "":
		r.Leading = p.phase
		return named(p.phase), nil
	}
	from, to := p.from.at.Seconds(), r.Seconds
	if p.to.given {
		to = p.to.at.Seconds()
	}
	if from < 0 || to <= from {
		return "", fmt.Errorf("--from %v must be 0 or more, and before --to %v", p.from.at, time.Duration(to*float64(time.Second)))
	}
	if err := report.Recut(dir, r, from, to); err != nil {
		return "", err
	}
	return named(r.Leading), nil
}

var errCondition = errors.New("a --fail-if holds, or cannot be decided")

func newCompare(gs *state.GlobalState) *cobra.Command {
	var (
		failIf       []string
		phase        string
		out          string
		overwrite    bool
		allowInvalid bool
	)
	c := &cobra.Command{
		Use:   "compare DIR DIR... | NAME=DIR,DIR NAME=DIR,DIR",
		Short: "Lay runs over one another: a table, and a page",
		Long: "Compares runs with the first. Several runs of one test are repetitions: NAME=DIR,DIR. Four repetitions of each side\n" +
			"separate a difference from noise.",
		Example: "  k6 x broker compare results/before results/after\n" +
			"  k6 x broker compare old=results/a,results/b new=results/c,results/d --fail-if 'e2e_latency p99 > 1.1x' --fail-if 'lost > 0'",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			conditions, err := parseConditions(failIf)
			if err != nil {
				return err
			}
			sides, err := compare.Load(args, phase, func(done, of int, path string) { progress(gs, done, of, path) })
			if err != nil {
				return err
			}
			if out == "" {
				out = freePage(filepath.Join("results", "compare-"+time.Now().UTC().Format("20060102T150405Z")))
			} else if exists(out) && !overwrite {
				return fmt.Errorf("%s exists already: choose another file with --out, or pass --overwrite", out)
			}
			comparison, err := compare.Compare(sides)
			if err != nil {
				return err
			}
			return show(gs, comparison, findings(comparison, conditions, allowInvalid), out)
		},
	}
	c.Flags().StringVar(&phase, "phase", "", "compare the runs as they were in this phase, such as measured; what was lost is the whole run's")
	c.Flags().StringArrayVar(&failIf, "fail-if", nil, "fail where this holds, such as 'e2e_latency p99 > 1.1x' or 'lost > 0'; may be given several times")
	c.Flags().StringVarP(&out, "out", "o", "", "the page (default results/compare-<time>.html)")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace the page if it exists")
	c.Flags().BoolVar(&allowInvalid, "allow-invalid", false, "let --fail-if pass also where a run is not valid")
	return c
}

// freePage is a page of that name or, where there is one already, the first that is free of those with a number behind it.
func freePage(name string) string {
	page := name + ".html"
	for n := 2; exists(page); n++ {
		page = fmt.Sprintf("%s-%d.html", name, n)
	}
	return page
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func parseConditions(texts []string) ([]compare.Condition, error) {
	conditions := make([]compare.Condition, len(texts))
	for i, text := range texts {
		var err error
		if conditions[i], err = compare.ParseCondition(text); err != nil {
			return nil, err
		}
	}
	return conditions, nil
}

// findings tries the conditions. Numbers that cannot be believed decide nothing.
func findings(c *compare.Comparison, conditions []compare.Condition, allowInvalid bool) (all []compare.Finding) {
	if len(conditions) > 0 && !allowInvalid {
		all = c.Invalid()
	}
	for _, condition := range conditions {
		all = append(all, c.Decide(condition)...)
	}
	return all
}

// show prints and writes a comparison, and is an error where it failed.
func show(gs *state.GlobalState, c *compare.Comparison, findings []compare.Finding, out string) error {
	if err := c.Text(gs.Stdout); err != nil {
		return err
	}
	failed := tell(gs, findings)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil { //gosec:disable G301 -- anybody may read it
		return err
	}
	if err := report.WriteAtomic(out, func(w io.Writer) error { return c.HTML(w, findings) }); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(gs.Stdout, "\n  page: %s\n", out)
	if failed {
		return errext.WithExitCodeIfNone(errCondition, exitcodes.ThresholdsHaveFailed)
	}
	return nil
}

// tell prints what conditions found, and whether any failed.
func tell(gs *state.GlobalState, findings []compare.Finding) (failed bool) {
	for _, f := range findings {
		failed = failed || f.Failed
		word := "passed"
		if f.Failed {
			word = "FAILED"
		}
		_, _ = fmt.Fprintf(gs.Stdout, "\n  %s  fail if %s: %s\n", word, f.Condition.Text, f.Text)
	}
	return failed
}

// progress tells what is being read, where there is more than a few to read.
func progress(gs *state.GlobalState, done, of int, path string) {
	if of > 2 {
		_, _ = fmt.Fprintf(gs.Stderr, "[%d/%d] %s\n", done+1, of, path)
	}
}
