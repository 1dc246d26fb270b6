package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/merge"
)

// mergeFlags adds the flags of a merge.
func mergeFlags(c *cobra.Command, o *merge.Options) {
	f := c.Flags()
	f.StringVarP(&o.Out, "out", "o", "", "the folder of the joined result")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace the results in the folder if there are any")
	f.IntVar(&o.Processes, "processes", 0, "the number of processes of the test (default BROKER_PROCESSES of the test)")
	f.BoolVar(&o.AllowKilled, "allow-killed", false, "do not fail the result because a process was killed")
	f.StringArrayVar(&o.FailIf, "fail-if", nil, "fail if this holds, such as 'lost > 0' or 'e2e_latency p99 > 50ms'; may be given several times")
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
	c := command("coordinator --processes N -o OUT", "Start the processes of one test together, receive their results, and join them into one",
		"  k6 x broker coordinator --processes 2 -o results/nightly-17 --fail-if 'lost > 0'\n"+
			"  BROKER_COORDINATOR=http://127.0.0.1:6464 ./k6 run --execution-segment 0:1/2 --execution-segment-sequence 0,1/2,1 script.js",
		cobra.NoArgs, func([]string) error {
			ctx, stop := signal.NotifyContext(gs.Ctx, os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.Do(ctx, gs.Stdout)
		})
	mergeFlags(c, &o.Options)
	c.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:6464", "the address to listen on; 0.0.0.0:6464 is for processes on other machines")
	c.Flags().StringVar(&o.Test, "run", "", "the BROKER_RUN of the test (default that of the first process)")
	c.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long a process is waited for")
	_ = c.MarkFlagRequired("processes") // the flag exists
	return c
}
