// Package clock sleeps until a moment, as precisely as the platform lets: a load generator that wakes late starts late whatever it
// was to start. It also tells the CPU time of the process. Times are nanoseconds since the Unix epoch by [driver.Now].
package machine

import (
	"context"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Timer returns at the given time, or earlier with ctx's error. It sleeps by Go's timers alone, which may wake about a millisecond
// late; it works on every platform and under virtual time.
func Timer(ctx context.Context, until int64) error {
	left := time.Duration(until - driver.Now())
	if left <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
