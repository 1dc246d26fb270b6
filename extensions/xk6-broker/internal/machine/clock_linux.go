package machine

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const (
	// Go's timers wake up to a millisecond late where the process is idle, a timer of the kernel's about a fiftieth of that: the last
	// stretch before the moment is left to it. Longer waits use Go's, so that ctx is heard.
	kernelStretch = 2 * time.Millisecond
	timerSlack    = time.Millisecond
	// Of that, what is shorter than blockingStretch is slept by a system call that blocks, which takes half the CPU and one of Go's
	// processors meanwhile; more would be too long for what else is to run there.
	blockingStretch = 200 * time.Microsecond
	// What is nearer than the kernel can wake for, at about the CPU that it takes to sleep and to wake, is awaited awake.
	awakeStretch = 8 * time.Microsecond
)

// Until returns at the given time, or earlier with ctx's error, which it may notice up to 2 ms late.
func Until(ctx context.Context, until int64) error {
	for {
		left := time.Duration(until - driver.Now())
		switch {
		case left <= 0:
			return ctx.Err()
		case left <= awakeStretch:
		case left > kernelStretch:
			if err := Timer(ctx, until-int64(timerSlack)); err != nil {
				return err
			}
		default:
			if err := ctx.Err(); err != nil {
				return err
			}
			if left > blockingStretch || !block(left) {
				if !kernelSleep(left) {
					return Timer(ctx, until)
				}
			}
		}
	}
}

// blocking is how many goroutines block a processor of Go's, and mayBlock how many may. One processor is always left: where all are
// blocked nobody reads from a connection until Go's monitor looks after it, which may be after 10 ms, and every latency is as much longer.
var (
	blocking atomic.Int64
	mayBlock = sync.OnceValue(func() int64 { return int64(runtime.GOMAXPROCS(0)) - 1 })
)

// block sleeps by a system call, on a thread of its own; false where it may not. The kernel lets a thread oversleep by 50 µs, to wake several
// at once, unless the thread asks for better; that it stays so for the thread does no harm.
func block(d time.Duration) bool {
	defer blocking.Add(-1)
	if blocking.Add(1) > mayBlock() {
		return false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // refused, it only sleeps longer
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal may cut it short: the caller looks at the clock again
	return true
}

// alarm is a timer of the kernel that Go's network poller waits for. A goroutine that sleeps by it holds no thread, and none of Go's
// processors.
type alarm struct {
	fd   int
	file *os.File // of fd
	read [8]byte
}

var alarms = sync.Pool{New: func() any {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil { // too many files are open
		return (*alarm)(nil)
	}
	return &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}
}}

// kernelSleep sleeps by a timer of the kernel; false where none is to be had.
func kernelSleep(d time.Duration) bool {
	a, _ := alarms.Get().(*alarm)
	if a == nil {
		return false
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if unix.TimerfdSettime(a.fd, 0, &spec, nil) != nil {
		return false
	}
	if _, err := a.file.Read(a.read[:]); err != nil {
		return false
	}
	alarms.Put(a)
	return true
}
