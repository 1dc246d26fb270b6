package broker

import (
	"go.k6.io/k6/v2/ext"
	"go.k6.io/k6/v2/js/modules"
)

// version is what the linker says of a binary that is built from a checkout: there folders are in the place of versions, and k6, which looks
// for them in the build info, would show none.
var version string

func register(name string, module any) {
	modules.Register(name, module)
	stamp(ext.JSExtension, name)
}

// stamp has k6 show the version of an extension that is registered.
func stamp(of ext.ExtensionType, name string) {
	if version != "" {
		ext.Get(of)[name].Version = version
	}
}
