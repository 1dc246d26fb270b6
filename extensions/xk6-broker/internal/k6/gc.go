package k6

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// gcPercent is how much the heap may grow until garbage is collected, in percent of what is in use. With Go's own 100 the collector takes a
	// third of the CPU of a script that sends.
	gcPercent = 400
	// memoryShare of what there is for the process is what Go may use before it collects more often all the same.
	memoryShare = 0.7
)

// collector lets Go collect garbage less often where the user has not chosen by GOGC, and there is a limit to the memory that it takes. It is of
// the process.
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

// collection says how garbage is collected: GOGC and GOMEMLIMIT as they are in force.
func collection() (percent, limit string) {
	in := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(in)
	if bytes := in[1].Value.Uint64(); bytes < math.MaxInt64 {
		limit = fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	if n := in[0].Value.Uint64(); n < math.MaxInt64 {
		return fmt.Sprint(n), limit
	}
	return "off", limit
}
