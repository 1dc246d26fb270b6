package witness

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// newSleep makes a sleep of the system's: Go's timers would be up to a millisecond late on their own account.
func newSleep() func(time.Duration) {
	slept := 0
	return func(d time.Duration) {
		kernelSleep(d)
		// A goroutine that is in system calls for more than 10 ms without ever going through Go's scheduler keeps Go's monitor awake,
		// which costs more than all the rest.
		if slept++; slept%8 == 0 {
			runtime.Gosched()
		}
	}
}

// kernelSleep sleeps on a thread of its own, whose sleep the kernel may not lengthen, by 50 µs, to wake several at once.
func kernelSleep(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // refused, all sleeps take that much more
	left := unix.NsecToTimespec(int64(d))
	for errors.Is(unix.Nanosleep(&left, &left), unix.EINTR) { // a signal cut it short
	}
}

func thisHost() *host {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() == 0 {
		return newHost("/proc", "/sys/fs/cgroup", func(int) bool { return true })
	}
	return newHost("/proc", "/sys/fs/cgroup", set.IsSet)
}
