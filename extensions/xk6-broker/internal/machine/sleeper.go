package machine

import (
	"context"
	"runtime"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Sleeper is the sleep of one goroutine that sleeps again and again and in between does little that could make it wait.
//
// Go's monitor takes the processor away from a goroutine that for 10 ms has not been through Go's scheduler, and looks every 20 µs for more
// of them as long as it finds any: with a goroutine that wakes a thousand times a second by [Until] and never waits for anything, that is
// twice the CPU of all the rest. A Sleeper goes through the scheduler more often than that, when there is time to.
type Sleeper struct {
	Sleep   func(ctx context.Context, until int64) error // [Until] or [Timer]
	yielded int64
}

const (
	yieldEvery = 4 * time.Millisecond
	yieldTime  = 30 * time.Microsecond // in which others may run
)

// Until returns at the given time, or earlier with ctx's error.
func (s *Sleeper) Until(ctx context.Context, until int64) error {
	if now := driver.Now(); until-now > int64(yieldTime) && now-s.yielded > int64(yieldEvery) {
		s.yielded = now
		runtime.Gosched()
	}
	return s.Sleep(ctx, until)
}
