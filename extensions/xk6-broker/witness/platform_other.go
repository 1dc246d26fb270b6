//go:build !linux

package witness

import "time"

// newSleep gives Go's own sleep: its timers may be a millisecond late, and hiccups shorter than that mean nothing here.
func newSleep() func(time.Duration) { return time.Sleep }

func thisHost() *host { return nil }
