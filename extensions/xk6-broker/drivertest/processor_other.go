//go:build !unix

package drivertest

import "time"

func processorTime() (time.Duration, bool) { return 0, false }
