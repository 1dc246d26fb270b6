//go:build !linux

package clock

import "context"

// Until returns at the given time, or earlier with ctx's error.
func Until(ctx context.Context, until int64) error { return Timer(ctx, until) }
