//go:build !linux

package load

import "context"

// sleepUntil returns at the given time by [driver.Now], or earlier with ctx's error.
func sleepUntil(ctx context.Context, until int64) error { return timerSleep(ctx, until) }
