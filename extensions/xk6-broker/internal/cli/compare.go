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
	var o comparison
	c := command("compare DIR DIR... | NAME=DIR,DIR NAME=DIR,DIR", "Lay runs over one another: a table, and a page",
		"  k6 x broker compare results/before results/after\n"+
			"  k6 x broker compare old=results/a,results/b new=results/c,results/d --fail-if 'e2e_latency p99 > 1.1x' --fail-if 'lost > 0'",
		cobra.MinimumNArgs(1), func(args []string) error { return o.run(gs.Stdout, args) })
	f := c.Flags()
	f.StringVar(&o.phase, "phase", "", "compare the runs in this phase, such as measured; lost messages are those of the whole run")
	f.StringArrayVar(&o.failIf, "fail-if", nil, "fail if this holds, such as 'e2e_latency p99 > 1.1x' or 'lost > 0'; may be given several times")
	f.StringVarP(&o.out, "out", "o", "", "the page (default results/compare-<time>.html)")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace the page if it exists")
	f.BoolVar(&o.allowInvalid, "allow-invalid", false, "let --fail-if pass also if a run is not valid")
	return c
}

// comparison are the options of compare.
type comparison struct {
	failIf                  []string
	phase, out              string
	overwrite, allowInvalid bool
}

func (o *comparison) run(w io.Writer, args []string) error {
	conditions, err := merge.Conditions(o.failIf)
	if err != nil {
		return err
	}
	sides, err := compare.Load(args, o.phase, func(int, int, string) {})
	if err != nil {
		return err
	}
	c, err := compare.Compare(sides)
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join("results", "compare-"+time.Now().UTC().Format("20060102T150405.000Z")+".html")
	}
	if _, err := os.Stat(o.out); err == nil && !o.overwrite {
		return fmt.Errorf("%s exists already: choose another file with --out, or pass --overwrite", o.out)
	}
	var findings []compare.Finding
	if len(conditions) > 0 && !o.allowInvalid {
		findings = c.Invalid()
	}
	for _, condition := range conditions {
		findings = append(findings, c.Decide(condition)...)
	}
	if err := c.Text(w); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil { //gosec:disable G301 -- others may read it
		return err
	}
	if err := report.WriteAtomic(o.out, func(w io.Writer) error { return c.HTML(w, findings) }); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n  page: %s\n", o.out)
	return merge.Report(w, findings)
}
