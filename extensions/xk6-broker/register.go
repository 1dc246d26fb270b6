// Package broker is the k6 extension: importing it registers the JavaScript module k6/x/broker and
// the executor open-arrival-rate.
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
	// Each driver has a module name, by which k6 finds the extension that a script needs.
	driver.Watch(func(d *driver.Driver) { register("k6/x/broker/"+d.Name, k6.NewDriver(d)) })
}

// guardExit sets the exit code of a process whose results could not be written: k6 decides its code
// before handleSummary runs. Constructors of subcommands get the function it exits with. os.Exit at
// the event Exit would cut off loggers and other modules.
func guardExit(gs *state.GlobalState, module *k6.Module) {
	exit := gs.OSExit
	gs.OSExit = func(code int) { exit(module.ExitCode(code)) }
}
