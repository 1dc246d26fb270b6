package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/capacity"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// searching are the options of capacity.
type searching struct {
	runs       running
	objectives []string
	rate       string
	length     string
	width      string
	confidence string
	columns    []string
	search     capacity.Run
}

func newCapacity(gs *state.GlobalState) *cobra.Command {
	var o searching
	c := &cobra.Command{
		Use:   "capacity SCRIPT --objective 'e2e_latency p99 < 20ms' [-- K6 ARGUMENTS]",
		Short: "Find the greatest rate that meets every objective: an interval, with a confidence",
		Long: "Runs a script at many rates, each probe in a k6 process with results of its own, until the greatest rate that meets every objective is between\n" +
			"two that are as close as was asked for, with the confidence that was asked for; then latency at 10, 50, 70, 90 and 95 % of it. A probe that the\n" +
			"load generator spoils says nothing of the system: \"the generator ended first\" is an answer, and so is \"no steady state\".",
		Example: "  k6 x broker capacity scenarios/producer-consumer.js --objective 'e2e_latency p99 < 20ms' --objective 'lost == 0'\n" +
			"  k6 x broker capacity script.js --objective 'publish_latency p50 < 5ms' --rate-setting MESSAGES --from 1000 --to 50000 --reset 'scripts/wipe'",
		Args: oneScript,
		RunE: func(_ *cobra.Command, args []string) error { return o.run(gs, args[0], args[1:]) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.objectives, "objective", nil, "an upper limit of a latency, such as 'e2e_latency p99 < 20ms', or of what should not be, such as 'lost == 0'; may be given several times")
	f.StringVar(&o.rate, "rate-setting", "RATE", "the `NAME` of the setting, read by the script from __ENV, that is the rate: a whole number")
	f.StringVar(&o.length, "length-setting", "DURATION", "the `NAME` of the setting that is how long messages are sent")
	f.Int64Var(&o.search.Search.From, "from", 100, "the lowest rate to probe, and the first")
	f.Int64Var(&o.search.Search.To, "to", 0, "the highest rate to probe (default no limit)")
	f.StringVar(&o.width, "width", "5%", "how wide the interval may be")
	f.StringVar(&o.confidence, "confidence", "95%", "how probable it is, at least, that the capacity is in the interval")
	f.DurationVar(&o.search.Window, "probe", 15*time.Second, "how long a probe is, without its warm-up; whether it was steady is known from 14s on")
	f.DurationVar(&o.search.WarmUp, "warmup", 3*time.Second, "how long each probe warms up")
	f.IntVar(&o.search.Search.Probes, "probes", 60, "how many probes there may be in the search")
	f.StringArrayVar(&o.columns, "column", nil, "what to show of each probe, such as 'e2e_latency p99.9' (default "+strings.Join(defaultColumns, ", ")+"); may be given several times")
	o.runs.flags(c)
	return c
}

func (o *searching) run(gs *state.GlobalState, script string, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	s := &o.search
	plan := s.Plan()
	if err := plan.Check(); err != nil {
		return err
	}
	runner, known, err := o.runs.runner(gs, "capacity", script, args, plan.Settings)
	if err != nil {
		return err
	}
	s.Folder, s.Cell, s.Out = filepath.Dir(runner.Folder), runner.Run, gs.Stdout
	if s.Journal, err = o.runs.open(gs, runner, known, plan, s.Asked()); err != nil {
		return err
	}
	defer s.Journal.Close() //nolint:errcheck // the process ends
	ctx, stop, done := interruptible(gs)
	defer done()
	err = s.Do(ctx, stop)
	_, _ = fmt.Fprintf(gs.Stdout, "\n  results: %s, %s\n", filepath.Join(s.Folder, sweep.PageFile), sweep.TableFile)
	return stopped(err)
}

// check finds the mistakes that can be known before anything is read.
func (o *searching) check() (err error) {
	s := &o.search
	for _, text := range o.objectives {
		objective, err := measure.ParseObjective(text)
		if err != nil {
			return err
		}
		s.Objectives = append(s.Objectives, objective)
	}
	if err := capacity.CheckObjectives(s.Objectives); err != nil {
		return err
	}
	if s.Search.Width, err = share("--width", o.width, "5%"); err != nil {
		return err
	}
	if s.Search.Confidence, err = share("--confidence", o.confidence, "95%"); err != nil {
		return err
	}
	if err := s.Search.Check(); err != nil {
		return err
	}
	switch s.Rate, s.Length = o.rate, o.length; {
	case s.Rate == "" || s.Length == "" || s.Rate == s.Length:
		return errors.New("--rate-setting and --length-setting: name two settings")
	case s.Window < time.Second:
		return fmt.Errorf("--probe %v: it must be 1s or more", s.Window)
	case s.WarmUp < time.Second:
		return fmt.Errorf("--warmup %v: it must be 1s or more", s.WarmUp)
	case o.runs.pause < 0:
		return fmt.Errorf("--pause %v: it must be 0 or more", o.runs.pause)
	}
	var objectives []measure.Measure
	for _, objective := range s.Objectives {
		if !has(objectives, objective.Measure) {
			objectives = append(objectives, objective.Measure)
		}
	}
	s.Columns, err = shown(o.columns, objectives...)
	return err
}

// share reads a percentage.
func share(flag, text, such string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%s %q: write a percentage, such as %s", flag, text, such)
	}
	return v / 100, nil
}
