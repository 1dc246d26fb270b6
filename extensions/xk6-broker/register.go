// Package broker is the k6 extension: importing it registers the JavaScript module k6/x/broker and the executor
// open-arrival-rate.
package broker

import (
	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"
	"go.k6.io/k6/v2/ext"
	"go.k6.io/k6/v2/subcommand"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/cli"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6"
)

func init() {
	module := k6.New()
	register("k6/x/broker", module)
	subcommand.RegisterExtension("broker", func(gs *state.GlobalState) *cobra.Command {
		guardExit(gs, module)
		return cli.New(gs)
	})
	stamp(ext.SubcommandExtension, "broker")
	executors.Register()
	// Each driver has a name of its own to import, so that k6 can find by it which extension a script needs.
	driver.Watch(func(d *driver.Driver) { register("k6/x/broker/"+d.Name, k6.NewDriver(d)) })
}

// guardExit makes the process fail whose results were asked for and could not be written. k6 knows no way to say that: thresholds and the
// test's status are decided before handleSummary runs, and what handleSummary throws is only logged. What is left is the moment of exit,
// and k6's constructors of subcommands, which run before any command does, are the one place that lends the function it exits with. k6 asks
// extensions to leave its global state alone; of it this changes nothing but that code, after everything is done. To call os.Exit
// at the event Exit instead would cut off the loggers and what other modules do at that event.
func guardExit(gs *state.GlobalState, module *k6.Module) {
	exit := gs.OSExit
	gs.OSExit = func(code int) { exit(module.ExitCode(code)) }
}
