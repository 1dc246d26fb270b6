package load

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Go's timers wake about a millisecond late on short sleeps, the system call about a tenth of that: the last stretch
// before the due time is slept in the kernel. Longer waits use a timer, so that no thread is held and ctx is heard.
const (
	kernelStretch = 2 * time.Millisecond
	timerSlack    = time.Millisecond
)

// sleepUntil returns at the given time by [driver.Now], or earlier with ctx's error.
func sleepUntil(ctx context.Context, until int64) error {
	for {
		left := time.Duration(until - driver.Now())
		switch {
		case left <= 0:
			return ctx.Err()
		case left > kernelStretch:
			timer := time.NewTimer(left - timerSlack)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
		default:
			if err := ctx.Err(); err != nil {
				return err
			}
			runtime.LockOSThread()
			ts := unix.NsecToTimespec(int64(left))
			_ = unix.Nanosleep(&ts, nil) // a signal may cut it short: the loop looks at the clock again
			runtime.UnlockOSThread()
		}
	}
}
