package machine

import (
	"syscall"
	"time"
)

// CPU returns the CPU time of the process.
func CPU() time.Duration {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	var created, ended, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(process, &created, &ended, &kernel, &user) != nil {
		return 0
	}
	return duration(kernel) + duration(user)
}

// duration converts a time in units of 100 ns.
func duration(t syscall.Filetime) time.Duration {
	return 100 * (time.Duration(t.HighDateTime)<<32 + time.Duration(t.LowDateTime))
}
