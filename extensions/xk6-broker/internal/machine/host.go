package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// host reads what the operating system counts. A nil one, and one that lacks Linux's files, know nothing.
type host struct {
	proc  string         // the folder /proc
	mine  func(int) bool // the CPUs that the process may run on, by number
	group string         // the file with the pressure in the process's cgroup; none where empty
}

// counts are since the machine was started.
type counts struct {
	used, steal, all uint64 // time of CPUs, in the kernel's ticks; all is 0 where it is not known
	cpus             int    // how many these are
	pressure, group  stalled
}

// stalled is for how long some task has waited for a CPU.
type stalled struct {
	us    uint64
	known bool
}

func newHost(proc, cgroups string, mine func(int) bool) *host {
	return &host{proc: proc, mine: mine, group: groupPressure(proc, cgroups)}
}

// groupPressure finds the file of the process's own cgroup, where the hierarchy of version 2 is mounted, alone or beside that of
// version 1.
func groupPressure(proc, cgroups string) string {
	text, err := os.ReadFile(filepath.Join(proc, "self/cgroup")) //gosec:disable G304 -- /proc, or a test's
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		for _, mount := range []string{"", "unified"} {
			file := filepath.Join(cgroups, mount, path, "cpu.pressure")
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}
	return ""
}

func (h *host) count() counts {
	if h == nil {
		return counts{}
	}
	c := counts{pressure: readStalled(filepath.Join(h.proc, "pressure/cpu"))}
	if h.group != "" {
		c.group = readStalled(h.group)
	}
	if text, err := os.ReadFile(filepath.Join(h.proc, "stat")); err == nil { // /proc, or a test's
		c.used, c.steal, c.all, c.cpus = cpuTime(text, h.mine)
	}
	return c
}

// cpuTime adds up the time of some CPUs from the text of /proc/stat: lines such as "cpu0 user nice system idle iowait irq softirq steal
// guest guest_nice", in which guests' time is in user and nice already.
func cpuTime(text []byte, mine func(int) bool) (used, steal, all uint64, cpus int) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 5 || !bytes.HasPrefix(fields[0], []byte("cpu")) {
			continue
		}
		n, err := strconv.Atoi(string(fields[0][len("cpu"):]))
		if err != nil || !mine(n) { // the first line, which is the sum, has no number
			continue
		}
		cpus++
		for i, field := range fields[1:min(len(fields), 9)] {
			ticks, err := strconv.ParseUint(string(field), 10, 64)
			if err != nil {
				return 0, 0, 0, 0
			}
			all += ticks
			switch i {
			case 3, 4: // idle, also where it is for some disk
			case 7:
				steal += ticks
			default:
				used += ticks
			}
		}
	}
	return used, steal, all, cpus
}

// readStalled reads a file such as "some avg10=0.14 avg60=7.95 avg300=6.70 total=124846333", with more lines. The averages are of fixed
// times; the total, in µs, tells of any.
func readStalled(file string) stalled {
	text, err := os.ReadFile(file) //gosec:disable G304 -- /proc or a cgroup, or a test's
	if err != nil {
		return stalled{}
	}
	for line := range strings.Lines(string(text)) {
		some, ok := strings.CutPrefix(line, "some ")
		if !ok {
			continue
		}
		for _, field := range strings.Fields(some) {
			if total, ok := strings.CutPrefix(field, "total="); ok {
				us, err := strconv.ParseUint(total, 10, 64)
				return stalled{us: us, known: err == nil}
			}
		}
	}
	return stalled{}
}

// since sets the shares of an interval of so many ns, from its beginning to its end. The kernel's counts of idle time are not exact and
// may even go back a little.
func (c counts) since(from counts, ns float64, i *Interval) {
	if from.all > 0 {
		all := difference(c.all, from.all)
		i.Host, i.Steal = share(difference(c.used, from.used), all), share(difference(c.steal, from.steal), all)
	}
	i.Pressure, i.GroupPressure = c.pressure.since(from.pressure, ns), c.group.since(from.group, ns)
}

func (s stalled) since(from stalled, ns float64) Share {
	if !s.known || !from.known {
		return Share{}
	}
	return share(1e3*difference(s.us, from.us), ns)
}

func difference(to, from uint64) float64 { return float64(int64(to - from)) } //gosec:disable G115 -- bits, no number
