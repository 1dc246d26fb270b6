package js

import (
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/cpu"
	open "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/executor"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// circumstances are what k6 and the process know of the run.
func (r *run) circumstances() load.Circumstances {
	c := load.Circumstances{Dropped: r.dropped()}
	for _, scenario := range open.Totals() {
		c.Unserved += scenario.Unserved
	}
	if state := r.state.Load(); state != nil {
		used, could := cpu.Time()-state.cpu, time.Since(state.began)*time.Duration(runtime.GOMAXPROCS(0))
		c.CPU = min(1, float64(used)/float64(could))
		c.Asked = asked(state.thresholds)
	}
	return c
}

var percentile = regexp.MustCompile(`p\((\d+(?:\.\d+)?)\)`)

// asked finds the percentiles that thresholds decide on.
func asked(thresholds map[string]metrics.Thresholds) []load.Asked {
	var all []load.Asked
	for _, name := range slices.Sorted(maps.Keys(thresholds)) {
		on := thresholds[name]
		name, _, _ = strings.Cut(name, "{")
		trend, ok := trendOf(name)
		if !ok {
			continue
		}
		for _, threshold := range on.Thresholds {
			for _, match := range percentile.FindAllStringSubmatch(threshold.Source, -1) {
				if q, err := strconv.ParseFloat(match[1], 64); err == nil {
					all = append(all, load.Asked{Trend: trend, Q: q / 100})
				}
			}
		}
	}
	return all
}

func trendOf(name string) (load.Trend, bool) {
	for t := range load.Trend(load.NumTrends) {
		if prefix+t.String() == name {
			return t, true
		}
	}
	return 0, false
}
