package k6

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	rtmetrics "runtime/metrics"
	"strings"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.k6.io/k6/v2/ext"
)

// environment returns the versions and the machine.
func environment() map[string]string {
	env := map[string]string{
		"go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU()),
		"gomaxprocs": fmt.Sprint(runtime.GOMAXPROCS(0)),
		"cpu":        field("/proc/cpuinfo", "model name"), "memory": field("/proc/meminfo", "MemTotal"),
	}
	env["gogc"], env["gomemlimit"] = collection()
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		env["kernel"] = strings.TrimSpace(string(kernel))
	}
	if module := ext.Get(ext.JSExtension)["k6/x/broker"]; module != nil {
		env["xk6-broker"] = module.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "go.k6.io/k6/v2" {
				env["k6"] = m.Version
			}
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				env["revision"] = s.Value
			}
		}
	}
	maps.DeleteFunc(env, func(_, value string) bool { return value == "" })
	return env
}

// field returns the value after a name and a colon in a file of Linux; "" on other systems.
func field(file, name string) string {
	f, err := os.Open(file) //gosec:disable G304 -- a file of /proc
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

const (
	// gcPercent replaces Go's 100, with which the collector takes a third of the CPU of a script
	// that sends.
	gcPercent = 400
	// memoryShare is the share of the memory at which Go collects more often all the same.
	memoryShare = 0.7
)

// collector lets Go collect garbage less often, unless the user sets GOGC or the memory limit is
// unknown.
var collector = sync.OnceFunc(func() {
	if _, chosen := os.LookupEnv("GOGC"); chosen {
		return
	}
	if _, chosen := os.LookupEnv("GOMEMLIMIT"); !chosen {
		limit, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(memoryShare),
			memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
		if err != nil || limit == 0 {
			return
		}
	}
	debug.SetGCPercent(gcPercent)
})

// collection returns the GOGC and GOMEMLIMIT in force.
func collection() (percent, limit string) {
	in := []rtmetrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	rtmetrics.Read(in)
	if bytes := in[1].Value.Uint64(); bytes < math.MaxInt64 {
		limit = fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	if n := in[0].Value.Uint64(); n < math.MaxInt64 {
		return fmt.Sprint(n), limit
	}
	return "off", limit
}
