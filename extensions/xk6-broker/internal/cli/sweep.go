package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// sweeping are the options of sweep.
type sweeping struct {
	runs    running
	sets    []string
	zips    []string
	repeat  int
	seed    uint64
	columns []string
}

// running are the options of all that runs a script many times.
type running struct {
	out        string
	reset      string
	beforeCell string
	pause      time.Duration
	resume     bool
	keep       bool
}

func (o *running) flags(c *cobra.Command) {
	c.Flags().StringVarP(&o.out, "out", "o", "", "the folder of the study (default results/<script>-"+c.Name()+"-<time>)")
	c.Flags().StringVar(&o.reset, "reset", "", "a shell `command` before each cell, which gets its settings in the environment: it puts the broker into the same state")
	c.Flags().DurationVar(&o.pause, "pause", 0, "wait so long before each cell, after --reset")
	c.Flags().StringVar(&o.beforeCell, "before-cell", "", "a shell `command` right before each cell, after --pause")
	c.Flags().BoolVar(&o.resume, "resume", false, "go on with the study in the folder of --out: cells without a result are run")
	c.Flags().BoolVar(&o.keep, "keep", false, "keep all files of each cell's results, and not only summary.json, report.html and k6.log")
}

// defaultColumns are what a study shows unless somebody says otherwise.
var defaultColumns = []string{
	"confirmed rate", "received rate", "publish_latency p50", "publish_latency p99", "e2e_latency p50", "e2e_latency p99", "request_latency p50", "request_latency p99", "lost", "errors",
}

func newSweep(gs *state.GlobalState) *cobra.Command {
	var o sweeping
	c := &cobra.Command{
		Use:   "sweep SCRIPT --set NAME=VALUE,VALUE [-- K6 ARGUMENTS]",
		Short: "Run a script with every combination of settings: a table, and a page",
		Long: "Runs a script with every combination of settings, each in a k6 process with results of its own. A setting is a name that the script reads from\n" +
			"__ENV. Repetitions hold all combinations, shuffled, so that what drifts does not look like an effect. A cell that fails does not end the study;\n" +
			"Ctrl-C ends it after the running cell, a second one ends the cell too, and --resume goes on.",
		Example: "  k6 x broker sweep scenarios/producer-consumer.js --set RATE=1000,10000 --set SIZE=100,1000,10000 --repeat 5\n" +
			"  k6 x broker sweep script.js --set BROKER_URL=jetstream://127.0.0.1:4222,redis-streams://127.0.0.1:6379 --set NAME=nats,redis --zip BROKER_URL,NAME\n" +
			"  k6 x broker sweep script.js --set RATE=100,200 --out results/nightly --resume",
		Args: oneScript,
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(gs, args[0], args[1:], c.Flags().Changed("seed"))
		},
	}
	c.Flags().StringArrayVar(&o.sets, "set", nil, "a setting and its values: `NAME=VALUE,VALUE`; may be given several times")
	c.Flags().StringArrayVar(&o.zips, "zip", nil, "settings whose values go together, the first with the first and so on: `NAME,NAME`; may be given several times")
	c.Flags().IntVar(&o.repeat, "repeat", 1, "run each combination so many times")
	c.Flags().Uint64Var(&o.seed, "seed", 0, "of the order of the cells (default a new one, which is printed)")
	c.Flags().StringArrayVar(&o.columns, "column", nil, "what to show of each cell, such as 'e2e_latency p99.9' (default "+strings.Join(defaultColumns, ", ")+"); may be given several times")
	o.runs.flags(c)
	return c
}

// oneScript takes a script, and behind -- whatever is for k6.
func oneScript(c *cobra.Command, args []string) error {
	if n := c.ArgsLenAtDash(); len(args) == 0 || n == 0 || n > 1 || n < 0 && len(args) > 1 {
		return errors.New("give one script, and what is for k6 behind --")
	}
	return nil
}

func (o *sweeping) run(gs *state.GlobalState, script string, args []string, seeded bool) error {
	plan, columns, err := o.check()
	if err != nil {
		return err
	}
	runner, known, err := o.runs.runner(gs, "sweep", script, args, plan.Settings)
	if err != nil {
		return err
	}
	folder := filepath.Dir(runner.Folder)
	if !seeded {
		if plan.Seed, err = o.runs.seed(folder); err != nil {
			return err
		}
	}
	journal, err := o.runs.open(gs, runner, known, plan, plan.Asked())
	if err != nil {
		return err
	}
	defer journal.Close() //nolint:errcheck // the process ends
	run := sweep.Sweep{Plan: plan, Columns: columns, Folder: folder, Journal: journal, Run: runner.Run, Out: gs.Stdout}
	ctx, stop, done := interruptible(gs)
	defer done()
	failed, err := run.Do(ctx, stop)
	_, _ = fmt.Fprintf(gs.Stdout, "\n  results: %s, %s\n", filepath.Join(folder, sweep.PageFile), sweep.TableFile)
	if err != nil {
		return stopped(err)
	}
	if failed > 0 {
		return fmt.Errorf("cells without a result: %d; --resume runs them again", failed)
	}
	return nil
}

// check finds the mistakes that can be known before anything is read.
func (o *sweeping) check() (sweep.Plan, []measure.Measure, error) {
	plan := sweep.Plan{Repeat: o.repeat, Seed: o.seed}
	for _, text := range o.sets {
		s, err := sweep.ParseSetting(text)
		if err != nil {
			return plan, nil, err
		}
		plan.Settings = append(plan.Settings, s)
	}
	for _, names := range o.zips {
		plan.Zips = append(plan.Zips, strings.Split(names, ","))
	}
	if err := plan.Check(); err != nil {
		return plan, nil, err
	}
	if o.runs.pause < 0 {
		return plan, nil, fmt.Errorf("--pause %v: it must be 0 or more", o.runs.pause)
	}
	columns, err := shown(o.columns)
	return plan, columns, err
}

// shown are the columns of a study: first what it asks about.
func shown(names []string, first ...measure.Measure) ([]measure.Measure, error) {
	if len(names) == 0 {
		names = defaultColumns
	}
	asked := make([]measure.Measure, len(names))
	for i, name := range names {
		m, err := measure.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("--column: %w", err)
		}
		if has(asked[:i], m) {
			return nil, fmt.Errorf("--column %q is given twice", name)
		}
		asked[i] = m
	}
	return append(first, slices.DeleteFunc(asked, func(m measure.Measure) bool { return has(first, m) })...), nil
}

func has(columns []measure.Measure, m measure.Measure) bool {
	return slices.ContainsFunc(columns, func(c measure.Measure) bool { return c.Label() == m.Label() })
}

// runner makes what runs the cells, and reads the script.
func (o *running) runner(gs *state.GlobalState, verb, script string, args []string, settings []sweep.Setting) (*sweep.Runner, *sweep.Script, error) {
	k6, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("this program cannot find itself: %w", err)
	}
	if err := sweep.CheckArgs(args, settings); err != nil {
		return nil, nil, err
	}
	if err := sweep.CheckFlags(gs.Ctx, k6, args); err != nil {
		return nil, nil, err
	}
	known, err := sweep.Inspect(gs.Ctx, k6, script)
	if err != nil {
		return nil, nil, err
	}
	out := o.out
	if out == "" {
		if o.resume {
			return nil, nil, errors.New("--resume: name the folder of the study with --out")
		}
		name := strings.TrimSuffix(filepath.Base(script), filepath.Ext(script))
		out = filepath.Join("results", name+"-"+verb+"-"+time.Now().UTC().Format("20060102T150405Z"))
	}
	return &sweep.Runner{
		K6: k6, Script: script, Args: args, Folder: filepath.Join(out, sweep.CellsFolder),
		Reset: o.reset, Pause: o.pause, BeforeCell: o.beforeCell, Keep: o.keep,
	}, known, nil
}

// seed is that of the study to go on with, or a new one.
func (o *running) seed(folder string) (uint64, error) {
	if !o.resume {
		return rand.Uint64N(1_000_000), nil //gosec:disable G404 -- an order, and no secret
	}
	before, err := sweep.Read(folder)
	if err != nil {
		return 0, err
	}
	was, _ := before.Fact(sweep.SeedFact)
	seed, _ := strconv.ParseUint(was, 10, 64) // what is wrong with it Resume finds
	return seed, nil
}

// open checks what is to be run, and opens the journal of the study. What is wrong is told before anything is written.
func (o *running) open(gs *state.GlobalState, r *sweep.Runner, known *sweep.Script, plan sweep.Plan, asked []sweep.Fact) (*sweep.Journal, error) {
	folder := filepath.Dir(r.Folder)
	if !o.resume {
		if err := sweep.Free(folder); err != nil {
			return nil, err
		}
	}
	if err := known.Check(gs.Ctx, r.K6, plan); err != nil {
		return nil, err
	}
	return sweep.Open(folder, append(r.Asked(known, plan.Settings), asked...), o.resume)
}

// stopped gives the error of a study that was stopped the exit code of an interruption.
func stopped(err error) error {
	if errors.Is(err, sweep.ErrStopped) {
		return errext.WithExitCodeIfNone(err, exitcodes.ExternalAbort)
	}
	return err
}

// interruptible gives a channel that a first Ctrl-C closes, and a context that a second one ends, or a SIGTERM at once.
func interruptible(gs *state.GlobalState) (ctx context.Context, stop <-chan struct{}, done func()) {
	ctx, cancel := context.WithCancel(gs.Ctx)
	signals, stopping := make(chan os.Signal, 2), make(chan struct{})
	gs.SignalNotify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for first := true; ; first = false {
			select {
			case got := <-signals:
				if first && got == os.Interrupt {
					_, _ = fmt.Fprintln(gs.Stderr, "\n  the study ends after this cell; Ctrl-C once more ends the cell, too")
					close(stopping)
					continue
				}
				_, _ = fmt.Fprintln(gs.Stderr, "\n  the cell is told to end")
				cancel()
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, stopping, func() { gs.SignalStop(signals); cancel() }
}
