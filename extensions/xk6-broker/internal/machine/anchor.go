package machine

import (
	"os"
	"strings"
)

// Anchor ties the clock of a process, [driver.Now], to one that all processes on its machine read.
type Anchor struct {
	Machine string `json:"machine"` // names that clock; "" where the system has none that is known
	At      int64  `json:"at"`      // what the process's clock says when that says 0, in ns
	Error   int64  `json:"error"`   // give or take
}

// Machine names the machine's clock, by which wall-clock times are told: processes that name one have one time, those on different machines
// need not. It is "" where the system has no name for it.
func Machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id") // of Linux, containers included
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot))
}
