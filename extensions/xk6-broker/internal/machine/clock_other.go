//go:build !linux

package machine

import "context"

// Until returns at the given time, or earlier with ctx's error.
func Until(ctx context.Context, until int64) error { return Timer(ctx, until) }
