package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/studies"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// replaying are the options of study.
type replaying struct {
	runs    running
	scale   float64
	only    []string
	repeat  int
	seed    uint64
	brokers bool
}

func newStudy(gs *state.GlobalState) *cobra.Command {
	var o replaying
	c := &cobra.Command{
		Use:   "study FILE.js",
		Short: "Run a study that is written down: what was measured beside what was published",
		Long: "Runs what a file says that exports a study: tests, each a script with cells of settings, and what was published of each. The tables have what was\n" +
			"measured beside what was published. Ctrl-C ends it after the running cell, a second one ends the cell too, and --resume goes on.",
		Example: "  k6 x broker study scenarios/studies/kreps-2014.js --scale 0.01\n" +
			"  k6 x broker study scenarios/studies/kreps-2014.js --only producers --out results/kreps --resume",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one study's file, such as scenarios/studies/kreps-2014.js")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(gs, args[0], c.Flags().Changed("seed"))
		},
	}
	c.Flags().Float64Var(&o.scale, "scale", 1, "what the file has as SCALE, more than 0 and up to 1: how much of its messages, or of its time")
	c.Flags().StringSliceVar(&o.only, "only", nil, "run only the tests of these names: `NAME,NAME`")
	c.Flags().IntVar(&o.repeat, "repeat", 0, "run each cell so many times (default as the file says)")
	c.Flags().Uint64Var(&o.seed, "seed", 0, "of the order of the cells (default a new one)")
	c.Flags().BoolVar(&o.brokers, "brokers", false, "run nothing: print the brokers that the study needs, as scripts/broker calls them")
	o.runs.flags(c)
	return c
}

func (o *replaying) run(gs *state.GlobalState, file string, seeded bool) error {
	if !(o.scale > 0 && o.scale <= 1) {
		return fmt.Errorf("--scale %v: it must be more than 0, and 1 at most", o.scale)
	}
	if o.repeat < 0 {
		return fmt.Errorf("--repeat %d: it must be 1 or more", o.repeat)
	}
	if o.runs.pause < 0 {
		return fmt.Errorf("--pause %v: it must be 0 or more", o.runs.pause)
	}
	s, err := studies.Load(file, gs.Env, o.scale)
	if err != nil {
		return err
	}
	if o.repeat > 0 {
		s.Repeat = o.repeat
	}
	if o.brokers {
		_, _ = fmt.Fprintln(gs.Stdout, strings.Join(s.Brokers, " "))
		return nil
	}
	r, err := o.replay(gs, s, file, seeded)
	if err != nil {
		return err
	}
	if err := r.Prepare(gs.Ctx, o.runs.resume); err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // the process ends
	ctx, stop, done := interruptible(gs)
	defer done()
	failed, err := r.Do(ctx, stop)
	_, _ = fmt.Fprintf(gs.Stdout, "\n  results: %s\n", filepath.Join(r.Folder, studies.TablesFile))
	if err != nil {
		return stopped(err)
	}
	if failed > 0 {
		return fmt.Errorf("%d runs have no result: --resume runs them again", failed)
	}
	return nil
}

// replay makes what runs the study.
func (o *replaying) replay(gs *state.GlobalState, s *studies.Study, file string, seeded bool) (*studies.Run, error) {
	k6, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program cannot find itself: %w", err)
	}
	r := &studies.Run{
		Study: s, Folder: o.runs.out, Seed: o.seed, Scale: o.scale, Only: o.only, Out: gs.Stdout,
		Runner:  sweep.Runner{K6: k6, Reset: o.runs.reset, Pause: o.runs.pause, BeforeCell: o.runs.beforeCell, Keep: o.runs.keep},
		Command: sweep.Shown(strings.Join(append([]string{"k6"}, gs.CmdArgs[1:]...), " ")),
	}
	switch {
	case r.Folder == "" && o.runs.resume:
		return nil, errors.New("--resume: name the folder of the study with --out")
	case r.Folder == "":
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		r.Folder = filepath.Join("results", name+"-"+time.Now().UTC().Format("20060102T150405Z"))
	}
	if !seeded {
		r.Seed, err = o.runs.seed(r.Folder)
	}
	return r, err
}
