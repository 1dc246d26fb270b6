package report

import (
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// machineRow is a line of the page's table of the machine.
type machineRow struct{ Name, Value string }

// machineRows returns what was observed of the machine; none if it was not observed.
func machineRows(p *result.Platform) (rows []machineRow) {
	if seen := p.Seen(); seen != nil && seen.Count() > 0 {
		hiccups := ""
		for _, c := range columns {
			if seen.Supported(c.q) {
				hiccups += c.name + " " + Duration(seen.Quantile(c.q)) + ", "
			}
		}
		rows = append(rows, machineRow{"a thread woke late by", hiccups + "max " + Duration(seen.Max())})
	}
	if p == nil {
		return rows
	}
	for _, s := range []struct {
		name, of string
		value    *float64
	}{
		{"CPU used by k6", "of its CPUs", p.Process},
		{"CPU used by all processes", "of the machine's CPUs", p.Host},
		{"CPU used by other machines (steal)", "of the machine's CPUs", p.Steal},
		{"a task of the machine waited for a CPU (pressure)", "of the time", p.Pressure},
		{"a task of k6's cgroup waited for a CPU (pressure)", "of the time", p.GroupPressure},
	} {
		if s.value != nil {
			rows = append(rows, machineRow{s.name, fmt.Sprintf("%.0f %% %s", 100**s.value, s.of)})
		}
	}
	return rows
}
