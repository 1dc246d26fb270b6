// Package machine sleeps precisely and monitors the machine of the load generator: CPU time,
// pressure, and hiccups, the times for which the process was not allowed to run. Times are
// nanoseconds since the Unix epoch by [driver.Now].
package machine

import (
	"context"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Timer returns at the given time, or earlier with ctx's error. It sleeps by Go's timers, which can
// wake a millisecond late. It works on every platform and under virtual time.
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

// Sleeper is the sleep of one goroutine that sleeps again and again and never blocks in between.
//
// Go's monitor preempts a goroutine that has not been through the scheduler for 10 ms, and then
// looks every 20 µs for more of them, which doubles the CPU of a goroutine that wakes a thousand
// times a second by [Until]. A Sleeper goes through the scheduler more often if there is time.
type Sleeper struct {
	Sleep   func(ctx context.Context, until int64) error // [Until] or [Timer]
	yielded int64
}

const (
	yieldEvery = 4 * time.Millisecond
	yieldTime  = 30 * time.Microsecond // for other goroutines
)

// Until returns at the given time, or earlier with ctx's error.
func (s *Sleeper) Until(ctx context.Context, until int64) error {
	if now := driver.Now(); until-now > int64(yieldTime) && now-s.yielded > int64(yieldEvery) {
		s.yielded = now
		runtime.Gosched()
	}
	return s.Sleep(ctx, until)
}

// Anchor is the difference between the clock of a process, [driver.Now], and a clock that all
// processes of its machine read.
type Anchor struct {
	Machine string // names the machine's clock; "" if the system does not
	At      int64  // the process's clock when the machine's is 0, in ns
	Error   int64  // of At, at most
}

// Machine returns a name of the machine's wall clock: processes with the same name read the same
// clock. It is "" if the system has none.
func Machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id") // Linux, containers included
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot))
}
