package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/compare"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/merge"
)

func newReport(gs *state.GlobalState) *cobra.Command {
	var phase string
	var from, to time.Duration
	c := command("report DIR...", "Draw report.html anew from summary.json, or look at a part of the run",
		"  k6 x broker report results/nightly --from 30s --to 90s\n  k6 x broker report results/nightly --phase peak",
		cobra.MinimumNArgs(1), func(dirs []string) error {
			for _, dir := range dirs {
				if err := draw(gs.Stdout, dir, phase, from, to); err != nil {
					return fmt.Errorf("%s: %w", dir, err)
				}
			}
			return nil
		})
	c.Flags().StringVar(&phase, "phase", "", "the phase of the run to look at")
	c.Flags().DurationVar(&from, "from", 0, "look at the run after this time from the start")
	c.Flags().DurationVar(&to, "to", 0, "look at the run before this time from the start (default the end)")
	return c
}

// draw writes the page of a result, or prints a part of the run and writes a page for it.
func draw(w io.Writer, dir, phase string, from, to time.Duration) error {
	r, err := report.Read(dir)
	if err != nil {
		return err
	}
	if filepath.Base(dir) == report.SummaryFile {
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, report.PageFile)
	if phase != "" || from != 0 || to != 0 {
		if err := cut(dir, r, phase, from, to); err != nil {
			return err
		}
		path = filepath.Join(dir, report.Sanitise("report-"+r.Leading)+filepath.Ext(path))
		if err := report.Text(w, r); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, path)
	return report.WriteAtomic(path, func(w io.Writer) error { return report.HTML(w, r) })
}

// cut lets a phase, or the part between two times, lead the result.
func cut(dir string, r *result.Result, phase string, from, to time.Duration) error {
	switch {
	case phase == "" && to == 0:
		return report.Recut(dir, r, from.Seconds(), r.Seconds)
	case phase == "":
		return report.Recut(dir, r, from.Seconds(), to.Seconds())
	case from != 0 || to != 0:
		return errors.New("give --phase, or --from and --to")
	case r.Phase(phase) == nil:
		return fmt.Errorf("there was no phase %q: there were %s", phase, strings.Join(r.PhaseNames(), ", "))
	}
	r.Leading = phase
	return nil
}

func newCompare(gs *state.GlobalState) *cobra.Command {
	var o comparison
	c := command("compare DIR... | NAME=DIR,DIR...", "Lay runs over one another: a table, and a page",
		"  k6 x broker compare results/before results/after\n"+
			"  k6 x broker compare old=results/a,results/b new=results/c,results/d --fail-if 'lost > 0'",
		cobra.MinimumNArgs(1), func(args []string) error { return o.run(gs.Stdout, args) })
	f := c.Flags()
	f.StringVar(&o.phase, "phase", "", "compare the runs in this phase, such as measured")
	f.StringArrayVar(&o.failIf, "fail-if", nil, "fail if this holds, such as 'e2e_latency p99 > 1.1x'; repeatable")
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
	sides, err := compare.Load(args, o.phase)
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

// mergeFlags adds the flags of a merge.
func mergeFlags(c *cobra.Command, o *merge.Options) {
	f := c.Flags()
	f.StringVarP(&o.Out, "out", "o", "", "the folder of the joined result")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace the results in the folder if there are any")
	f.IntVar(&o.Processes, "processes", 0, "the number of processes of the test (default BROKER_PROCESSES)")
	f.BoolVar(&o.AllowKilled, "allow-killed", false, "do not fail the result because a process was killed")
	f.StringArrayVar(&o.FailIf, "fail-if", nil, "fail if this holds, such as 'e2e_latency p99 > 50ms'; repeatable")
	f.BoolVar(&o.AllowInvalid, "allow-invalid", false, "do not fail if the result is not valid")
	_ = c.MarkFlagRequired("out") // the flag exists
}

func newMerge(gs *state.GlobalState) *cobra.Command {
	var o merge.Options
	c := command("merge DIR... -o OUT", "Join the results of the processes of one test into one",
		"  k6 x broker merge results/one results/two -o results/nightly-17 --processes 2 --fail-if 'lost > 0'",
		cobra.MinimumNArgs(1), func(dirs []string) error { return o.Join(gs.Stdout, dirs, nil) })
	mergeFlags(c, &o)
	return c
}

func newCoordinator(gs *state.GlobalState) *cobra.Command {
	o := merge.Coordinator{Token: gs.Env["BROKER_COORDINATOR_TOKEN"], Log: gs.Stderr}
	c := command("coordinator --processes N -o OUT", "Start the processes of one test together, and join their results",
		"  k6 x broker coordinator --processes 2 -o results/nightly-17 --fail-if 'lost > 0'",
		cobra.NoArgs, func([]string) error {
			ctx, stop := signal.NotifyContext(gs.Ctx, os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.Do(ctx, gs.Stdout)
		})
	mergeFlags(c, &o.Options)
	c.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:6464", "the address; 0.0.0.0:6464 for other machines")
	c.Flags().StringVar(&o.Test, "run", "", "the BROKER_RUN of the test (default that of the first process)")
	c.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long a process is waited for")
	_ = c.MarkFlagRequired("processes") // the flag exists
	return c
}

func newExplain(gs *state.GlobalState) *cobra.Command {
	return command("explain [WORD]", "Explain a word of the tables, or all words", "  k6 x broker explain 'generator lag'",
		cobra.ArbitraryArgs, func(args []string) error {
			text, err := report.Explain(strings.Join(args, " "))
			if err == nil {
				fmt.Fprintln(gs.Stdout, text)
			}
			return err
		})
}
