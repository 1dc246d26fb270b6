package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/compare"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/merge"
)

func newCompare(gs *state.GlobalState) *cobra.Command {
	var failIf []string
	var phase, out string
	var overwrite, allowInvalid bool
	c := &cobra.Command{
		Use: "compare DIR DIR... | NAME=DIR,DIR NAME=DIR,DIR", Short: "Lay runs over one another: a table, and a page",
		Long: "Compares runs with the first. Several runs of one test are repetitions: NAME=DIR,DIR, or folders that differ only\n" +
			"by a number or a time at the end. Four repetitions of each side separate a difference from noise.",
		Example: "  k6 x broker compare results/before results/after\n" +
			"  k6 x broker compare old=results/a,results/b new=results/c,results/d --fail-if 'e2e_latency p99 > 1.1x' --fail-if 'lost > 0'",
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	f.StringVar(&phase, "phase", "", "compare the runs in this phase, such as measured; lost messages are those of the whole run")
	f.StringArrayVar(&failIf, "fail-if", nil, "fail if this holds, such as 'e2e_latency p99 > 1.1x' or 'lost > 0'; may be given several times")
	f.StringVarP(&out, "out", "o", "", "the page (default results/compare-<time>.html)")
	f.BoolVar(&overwrite, "overwrite", false, "replace the page if it exists")
	f.BoolVar(&allowInvalid, "allow-invalid", false, "let --fail-if pass also if a run is not valid")
	c.RunE = func(_ *cobra.Command, args []string) error {
		conditions := make([]compare.Condition, len(failIf))
		for i, text := range failIf {
			var err error
			if conditions[i], err = compare.ParseCondition(text); err != nil {
				return err
			}
		}
		sides, err := compare.Load(args, phase, func(int, int, string) {})
		if err != nil {
			return err
		}
		if out == "" {
			out = filepath.Join("results", "compare-"+time.Now().UTC().Format("20060102T150405.000Z")+".html")
		}
		if _, err := os.Stat(out); err == nil && !overwrite {
			return fmt.Errorf("%s exists already: choose another file with --out, or pass --overwrite", out)
		}
		comparison, err := compare.Compare(sides)
		if err != nil {
			return err
		}
		var findings []compare.Finding
		if len(conditions) > 0 && !allowInvalid {
			findings = comparison.Invalid()
		}
		for _, condition := range conditions {
			findings = append(findings, comparison.Decide(condition)...)
		}
		return withCode(show(gs, comparison, findings, out))
	}
	return c
}

// show prints a comparison, and writes its page.
func show(gs *state.GlobalState, c *compare.Comparison, findings []compare.Finding, out string) error {
	if err := c.Text(gs.Stdout); err != nil {
		return err
	}
	failed := merge.Report(gs.Stdout, findings)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil { //gosec:disable G301 -- others may read it
		return err
	}
	if err := report.WriteAtomic(out, func(w io.Writer) error { return c.HTML(w, findings) }); err != nil {
		return err
	}
	fmt.Fprintf(gs.Stdout, "\n  page: %s\n", out)
	if failed {
		return merge.ErrCondition
	}
	return nil
}
