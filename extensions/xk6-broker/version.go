package broker

import (
	"go.k6.io/k6/v2/ext"
	"go.k6.io/k6/v2/js/modules"
)

// version is set by the linker of a binary built from a checkout. Its build info has folders
// instead of versions, so that k6 would show none.
var version string

func register(name string, module any) {
	modules.Register(name, module)
	stamp(ext.JSExtension, name)
}

// stamp sets the version of a registered extension for k6.
func stamp(kind ext.ExtensionType, name string) {
	if version != "" {
		ext.Get(kind)[name].Version = version
	}
}
