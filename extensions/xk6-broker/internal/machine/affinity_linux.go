package machine

import "golang.org/x/sys/unix"

// thisHost is the machine, of which the process may use some CPUs.
func thisHost() *host {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() == 0 {
		return newHost("/proc", "/sys/fs/cgroup", func(int) bool { return true })
	}
	return newHost("/proc", "/sys/fs/cgroup", set.IsSet)
}
