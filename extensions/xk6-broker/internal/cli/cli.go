// Package cli has the subcommands of `k6 x broker`. Each is flags and a call of a tool.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/capacity"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/merge"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/studies"
)

// New returns the command.
func New(gs *state.GlobalState) *cobra.Command {
	root := &cobra.Command{Use: "broker", Short: "Work on the results of broker tests"}
	root.AddCommand(newReport(gs), newCompare(gs), newMerge(gs), newCoordinator(gs), newExplain(gs))
	root.AddCommand(newSweep(gs), newCapacity(gs), newStudy(gs))
	return root
}

// command returns a subcommand. Its errors get their exit codes.
func command(use, short, example string, args cobra.PositionalArgs, run func([]string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: args,
		RunE: func(_ *cobra.Command, args []string) error { return withCode(run(args)) },
	}
}

func withCode(err error) error {
	switch {
	case errors.Is(err, merge.ErrInvalid), errors.Is(err, merge.ErrCondition):
		return errext.WithExitCodeIfNone(err, exitcodes.ThresholdsHaveFailed)
	case errors.Is(err, cells.ErrStopped), errors.Is(err, merge.ErrInterrupted):
		return errext.WithExitCodeIfNone(err, exitcodes.ExternalAbort)
	}
	return err
}

// interruptible returns a channel that the first Ctrl-C closes, and a context that ends at the
// second or at SIGTERM.
func interruptible(gs *state.GlobalState) (ctx context.Context, stop <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(gs.Ctx)
	signals, stopping := make(chan os.Signal, 2), make(chan struct{})
	gs.SignalNotify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if got := <-signals; got == os.Interrupt {
			fmt.Fprintln(gs.Stderr, "\n  the study ends after this cell; Ctrl-C once more ends the cell, too")
			close(stopping)
			<-signals
		}
		cancel()
	}()
	return ctx, stopping, func() { gs.SignalStop(signals); cancel() }
}

// do runs a study until it ends or is interrupted.
func do(gs *state.GlobalState, s *cells.Study, run func(context.Context) error) error {
	ctx, stop, release := interruptible(gs)
	defer release()
	s.Stop, s.Out = stop, gs.Stdout
	err := run(ctx)
	if s.Asked != nil {
		fmt.Fprintf(gs.Stdout, "\n  results: %s/%s\n", s.Folder, cells.PageFile)
	}
	return err
}

// studyFlags adds the flags of all commands that run a script many times.
func studyFlags(c *cobra.Command, s *cells.Study) {
	f := c.Flags()
	f.StringVarP(&s.Folder, "out", "o", "", "the folder of the study (default results/<name>-<time>)")
	f.StringVar(&s.Reset, "reset", "", "a shell `command` before each cell, with its settings in the environment")
	f.BoolVar(&s.Resume, "resume", false, "continue the study in the folder of --out")
}

// oneScript accepts a script, and arguments for k6 behind --.
func oneScript(c *cobra.Command, args []string) error {
	if n := c.ArgsLenAtDash(); len(args) == 0 || n == 0 || n > 1 || n < 0 && len(args) > 1 {
		return errors.New("give one script, and what is for k6 behind --")
	}
	return nil
}

func newSweep(gs *state.GlobalState) *cobra.Command {
	var r studies.Run
	var sets, columns []string
	c := command("sweep SCRIPT --set NAME=VALUE,VALUE [-- K6 ARGS]", "Run a script with every combination of settings",
		"  k6 x broker sweep scenarios/producer-consumer.js --set RATE=1000,10000 --set SIZE=100,1000,10000 --repeat 5",
		oneScript, func(args []string) (err error) {
			if r.Data, err = studies.Sweep(args[0], sets, columns); err != nil {
				return err
			}
			r.Name, r.Args = cells.Base(args[0])+"-sweep", args[1:]
			return do(gs, &r.Study, r.Do)
		})
	c.Flags().StringArrayVar(&sets, "set", nil, "a setting and its values: `NAME=VALUE,VALUE`; repeatable")
	c.Flags().IntVar(&r.Repeat, "repeat", 1, "run each combination so many times")
	c.Flags().StringArrayVar(&columns, "column", studies.SweepColumns, "a number to show of each run; repeatable")
	studyFlags(c, &r.Study)
	return c
}

func newCapacity(gs *state.GlobalState) *cobra.Command {
	var r capacity.Run
	c := command("capacity SCRIPT --objective 'e2e_latency p99 < 20ms' [-- K6 ARGUMENTS]",
		"Find the greatest rate that meets every objective: an interval, with a confidence",
		"  k6 x broker capacity scenarios/producer-consumer.js --objective 'e2e_latency p99 < 20ms'",
		oneScript, func(args []string) error {
			r.Script, r.Args = args[0], args[1:]
			return do(gs, &r.Study, r.Do)
		})
	f := c.Flags()
	f.StringArrayVar(&r.Objectives, "objective", nil, "an upper limit, such as 'e2e_latency p99 < 20ms'; repeatable")
	f.StringVar(&r.Rate, "rate-setting", "RATE", "the `NAME` of the setting that is the rate: a whole number")
	f.StringVar(&r.Length, "length-setting", "DURATION", "the `NAME` of the setting that is the length of a run")
	f.Int64Var(&r.Search.From, "from", 100, "the lowest rate to probe, and the first")
	f.Int64Var(&r.Search.To, "to", 0, "the highest rate to probe (default no limit)")
	f.StringVar(&r.Width, "width", "5%", "the width of the interval")
	f.StringVar(&r.Confidence, "confidence", "95%", "the least probability that the capacity is in the interval")
	f.DurationVar(&r.Window, "probe", 15*time.Second, "the length of a probe without its warm-up, best 14s or more")
	f.DurationVar(&r.WarmUp, "warmup", 3*time.Second, "the length of the warm-up of each probe")
	f.IntVar(&r.Search.Probes, "probes", 60, "the greatest number of probes in the search")
	f.StringArrayVar(&r.Columns, "column", nil, "a number to show beside those of the objectives; repeatable")
	studyFlags(c, &r.Study)
	return c
}

func newStudy(gs *state.GlobalState) *cobra.Command {
	var r studies.Run
	var scale float64
	var brokers bool
	c := command("study FILE.js", "Run a study from a file: measured beside published numbers",
		"  k6 x broker study scenarios/studies/kreps-2014.js --scale 0.01 --only producers --out results/kreps",
		cobra.ExactArgs(1), func(args []string) (err error) {
			if r.Data, err = studies.Load(args[0], gs.Env, scale); err != nil {
				return err
			}
			if brokers {
				fmt.Fprintln(gs.Stdout, strings.Join(r.Data.Brokers, " "))
				return nil
			}
			r.Name = cells.Base(args[0])
			r.Command = cells.Shown("k6 " + strings.Join(gs.CmdArgs[1:], " "))
			return do(gs, &r.Study, r.Do)
		})
	f := c.Flags()
	f.Float64Var(&scale, "scale", 1, "SCALE in the file, more than 0 and up to 1")
	f.StringSliceVar(&r.Only, "only", nil, "run only the tests of these names: `NAME,NAME`")
	f.IntVar(&r.Repeat, "repeat", 0, "run each cell so many times (default as in the file)")
	f.BoolVar(&brokers, "brokers", false, "only print the brokers that the study needs")
	studyFlags(c, &r.Study)
	return c
}
