package k6

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"go.k6.io/k6/v2/ext"
)

// environment names the versions and the machine.
func environment() map[string]string {
	env := map[string]string{
		"go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU()),
		"gomaxprocs": fmt.Sprint(runtime.GOMAXPROCS(0)),
	}
	env["gogc"], env["gomemlimit"] = collection()
	if model := after("/proc/cpuinfo", "model name"); model != "" {
		env["cpu"] = model
	}
	if memory := after("/proc/meminfo", "MemTotal"); memory != "" {
		env["memory"] = memory
	}
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
	return env
}

// after finds what stands behind a name and a colon in one of Linux's files; "" elsewhere.
func after(file, name string) string {
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
