package k6

import (
	"go.k6.io/k6/v2/js/modules"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// NewDriver makes the module k6/x/broker/NAME, which describes the driver. A script that imports it
// requires it.
func NewDriver(d *driver.Driver) modules.Module { return &driverModule{d} }

type driverModule struct{ d *driver.Driver }

func (m *driverModule) NewModuleInstance(vu modules.VU) modules.Instance {
	return &driverInstance{m.d, vu}
}

type driverInstance struct {
	d  *driver.Driver
	vu modules.VU
}

func (in *driverInstance) Exports() modules.Exports {
	return modules.Exports{Default: in.vu.Runtime().ToValue(describe(in.d))}
}

func describe(d *driver.Driver) map[string]any {
	return map[string]any{"name": d.Name, "schemes": d.Schemes, "doc": d.Doc, "features": features(d.Features)}
}
