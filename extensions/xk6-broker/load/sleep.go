package load

import (
	"context"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// timerSleep is sleepUntil by Go's timers alone: it works on every platform and under virtual time.
func timerSleep(ctx context.Context, until int64) error {
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
