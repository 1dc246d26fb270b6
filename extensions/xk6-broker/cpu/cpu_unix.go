//go:build unix

// Package cpu tells how much CPU time the process has used.
package cpu

import (
	"syscall"
	"time"
)

// Time is the CPU time of the process so far.
func Time() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
