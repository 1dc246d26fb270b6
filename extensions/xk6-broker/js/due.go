package js

import "go.k6.io/k6/v2/js/modules"

// dueTimes tells when what a VU sends was due.
type dueTimes struct{}

// next is when the next send of the VU was due, in ns since the Unix epoch; 0 where no schedule says: a closed loop.
func (*dueTimes) next(modules.VU) int64 { return 0 }
