package machine

import (
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Anchored ties the process's clock to the machine's monotonic one, which a namespace may have shifted.
func Anchored() Anchor {
	namespace, _ := os.Readlink("/proc/self/ns/time") // none before Linux 5.6
	a := Anchor{Machine: Machine() + " " + namespace, Error: math.MaxInt64}
	for range 20 { // the thread may be put aside between two readings
		var ts unix.Timespec
		before := driver.Now()
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
		after := driver.Now()
		if err != nil {
			return Anchor{}
		}
		if off := (after-before)/2 + 1; off < a.Error {
			a.At, a.Error = before+(after-before)/2-ts.Nano(), off
		}
	}
	return a
}
