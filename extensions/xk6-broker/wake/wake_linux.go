package wake

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const (
	// Go's timers wake up to a millisecond late where the process is idle, the system call about a fiftieth of that: the last stretch
	// before the moment is slept in the kernel. Longer waits use a timer, so that no thread is held and ctx is heard.
	kernelStretch = 2 * time.Millisecond
	timerSlack    = time.Millisecond
	// What is nearer than the kernel can wake for, at about the CPU that it takes to sleep and to wake, is awaited awake.
	awakeStretch = 8 * time.Microsecond
)

// Until returns at the given time, or earlier with ctx's error, which it may notice up to 2 ms late.
func Until(ctx context.Context, until int64) error {
	for {
		left := time.Duration(until - driver.Now())
		switch {
		case left <= 0:
			return ctx.Err() //nolint:wrapcheck // it is the caller's own
		case left <= awakeStretch:
		case left > kernelStretch:
			if err := Timer(ctx, until-int64(timerSlack)); err != nil {
				return err
			}
		default:
			if err := ctx.Err(); err != nil {
				return err //nolint:wrapcheck // it is the caller's own
			}
			kernelSleep(left)
		}
	}
}

// kernelSleep sleeps on a thread of its own. The kernel lets a thread oversleep by 50 µs, to wake several at once, unless the thread
// asks for better; that it stays so for the thread does no harm.
func kernelSleep(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // refused, it only sleeps longer
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal may cut it short: the caller looks at the clock again
}
