package machine

import (
	"context"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const (
	// Go's timers wake up to a millisecond late if the process is idle, a timer of the kernel about
	// a fiftieth of that. It sleeps the last stretch. Longer waits use Go's timers, which stop with
	// ctx.
	kernelStretch = 2 * time.Millisecond
	timerSlack    = time.Millisecond
	// A shorter stretch is slept by a blocking system call. It takes half the CPU, but one of Go's
	// processors, on which nothing else can run.
	blockingStretch = 200 * time.Microsecond
	// The rest is shorter than the kernel takes to wake, and is a busy wait.
	awakeStretch = 8 * time.Microsecond
)

// Until returns at the given time, or earlier with ctx's error, which it can notice 2 ms late.
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

// blocking is the number of goroutines that block a processor of Go, mostBlocking its limit. One
// processor stays free. Otherwise connections would be read only when Go's monitor takes over, up
// to 10 ms later, and every latency would be that much longer.
var (
	blocking     atomic.Int64
	mostBlocking = sync.OnceValue(func() int64 { return int64(runtime.GOMAXPROCS(0)) - 1 })
)

// block sleeps by a system call, on a thread of its own. It is false at the limit. The kernel lets
// a thread oversleep by 50 µs to wake several at once, unless the thread asks for better.
func block(d time.Duration) bool {
	defer blocking.Add(-1)
	if blocking.Add(1) > mostBlocking() {
		return false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // if it is refused, the sleep is longer
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal can end it early: the caller reads the clock
	return true
}

// alarm is a timer of the kernel that Go's network poller waits for. A goroutine that sleeps by it
// holds no thread and no processor of Go.
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

// kernelSleep sleeps by a timer of the kernel. It is false if there is none.
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

// Anchored compares the process's clock with the machine's monotonic one, which a namespace can
// shift.
func Anchored() Anchor {
	namespace, _ := os.Readlink("/proc/self/ns/time") // none before Linux 5.6
	a := Anchor{Machine: Machine() + " " + namespace, Error: math.MaxInt64}
	for range 20 { // the thread can be suspended between two readings
		var ts unix.Timespec
		before := driver.Now()
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
		after := driver.Now()
		if err != nil {
			return Anchor{}
		}
		if off := (after-before)/2 + 1; off < a.Error {
			a.At, a.Error = before+(after-before)/2-ts.Nano(), off
		}
	}
	return a
}

// ownCPUs returns a function that reports whether the process can run on a CPU.
func ownCPUs() func(int) bool {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() == 0 {
		return func(int) bool { return true }
	}
	return set.IsSet
}
