//go:build !linux

package machine

import "context"

// Until returns at the given time, or earlier with ctx's error.
func Until(ctx context.Context, until int64) error { return Timer(ctx, until) }

// Anchored returns the zero Anchor: the system does not name its clock.
func Anchored() Anchor { return Anchor{} }

// ownCPUs returns nil: the CPUs of the process are unknown.
func ownCPUs() func(int) bool { return nil }
