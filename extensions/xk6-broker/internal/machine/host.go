package machine

import (
	"os"
	"path/filepath"

	"github.com/prometheus/procfs"
)

// host reads the counters of the operating system. They are unknown without Linux's files.
type host struct {
	proc  string         // the folder /proc
	own   func(int) bool // the CPUs that the process can run on, by number; nil if unknown
	group string         // the folder of the process's cgroup, "" if unknown
}

// counts are the counters since the machine was started.
type counts struct {
	cpus             int     // of the process; 0 if unknown
	used, steal, all float64 // their time, in seconds
	pressure, group  stall
}

// stall is the time for which some task waited for a CPU.
type stall struct {
	us    uint64
	valid bool
}

func newHost(proc, cgroups string, own func(int) bool) *host {
	return &host{proc: proc, own: own, group: ownGroup(proc, cgroups)}
}

// ownGroup returns the folder of the process's cgroup, version 2, alone or beside version 1.
func ownGroup(proc, cgroups string) string {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return ""
	}
	process, err := fs.Self()
	if err != nil {
		return ""
	}
	groups, _ := process.Cgroups()
	for _, g := range groups {
		if g.HierarchyID != 0 {
			continue
		}
		for _, mount := range []string{"", "unified"} {
			folder := filepath.Join(cgroups, mount, g.Path)
			if _, err := os.Stat(filepath.Join(folder, "cpu.pressure")); err == nil {
				return folder
			}
		}
	}
	return ""
}

func (h *host) count() counts {
	c := counts{pressure: readStall(h.proc, "cpu"), group: readStall(h.group, "../cpu.pressure")}
	fs, err := procfs.NewFS(h.proc)
	if err != nil || h.own == nil {
		return c
	}
	stat, err := fs.Stat()
	if err != nil {
		return c
	}
	for n, cpu := range stat.CPU {
		if h.own(int(n)) {
			used := cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ // guests are in User and Nice
			c.used += used
			c.steal += cpu.Steal
			c.all += used + cpu.Steal + cpu.Idle + cpu.Iowait
			c.cpus++
		}
	}
	return c
}

// readStall reads the total of a pressure file. The resource is a path from "pressure" in the
// folder.
func readStall(folder, resource string) stall {
	fs, err := procfs.NewFS(folder)
	if err != nil {
		return stall{}
	}
	stats, err := fs.PSIStatsForResource(resource)
	if err != nil || stats.Some == nil {
		return stall{}
	}
	return stall{us: stats.Some.Total, valid: true}
}

// since sets the shares of an interval of so many ns. The kernel's idle time can go back a little.
func (c counts) since(from counts, ns float64, i *Interval) {
	if from.cpus > 0 && c.cpus > 0 {
		all := c.all - from.all
		i.Host, i.Steal = share(c.used-from.used, all), share(c.steal-from.steal, all)
	}
	i.Pressure, i.GroupPressure = c.pressure.since(from.pressure, ns), c.group.since(from.group, ns)
}

func (s stall) since(from stall, ns float64) Share {
	if !s.valid || !from.valid {
		return Share{}
	}
	return share(1e3*(float64(s.us)-float64(from.us)), ns)
}
