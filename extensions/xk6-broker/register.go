// Package broker is the k6 extension: importing it registers the JavaScript module k6/x/broker and the executor
// open-arrival-rate.
package broker

import (
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/subcommand"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/cli"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/executor"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/js"
)

func init() {
	modules.Register("k6/x/broker", js.New())
	subcommand.RegisterExtension("broker", cli.New)
	executor.Register()
	// Each driver has a name of its own to import, so that k6 can find by it which extension a script needs.
	driver.Watch(func(d *driver.Driver) { modules.Register("k6/x/broker/"+d.Name, js.NewDriver(d)) })
}
