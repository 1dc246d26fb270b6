package studies

import (
	"encoding/csv"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
)

// SweepColumns are the columns of a sweep if none are given.
var SweepColumns = []string{
	"confirmed rate", "received rate", "publish_latency p50", "publish_latency p99", "e2e_latency p50",
	"e2e_latency p99", "request_latency p50", "request_latency p99", "lost", "errors",
}

// Sweep returns a study of a script with every combination of settings, NAME=VALUE,VALUE as in CSV.
func Sweep(script string, sets, columns []string) (*Study, error) {
	test := &Test{Name: "sweep", Title: "Every combination", Script: script}
	s := &Study{Title: "Sweep of " + filepath.Base(script), Tests: []*Test{test}, Repeat: 1}
	var err error
	if test.Columns, err = cells.Parse(columns); err != nil {
		return nil, err
	}
	combinations, longest := []cells.Settings{{}}, 0
	for _, text := range sets {
		name, list, _ := strings.Cut(text, "=")
		lines, err := csv.NewReader(strings.NewReader(list)).ReadAll()
		if name == "" || err != nil || len(lines) != 1 {
			return nil, fmt.Errorf(`--set %q: write NAME=VALUE,VALUE, a value with a comma as "a,b"`, cells.Shown(text))
		}
		if slices.Contains(s.varied, name) {
			return nil, fmt.Errorf("--set %s is given twice: write all values in one", name)
		}
		combinations = combine(combinations, name, lines[0])
		s.varied = append(s.varied, name)
		if len(lines[0]) > longest {
			longest, s.axis = len(lines[0]), name
		}
	}
	if len(sets) == 0 {
		return nil, errors.New("nothing varies: give --set NAME=VALUE,VALUE")
	}
	for _, settings := range combinations {
		test.Cells = append(test.Cells, &Cell{Name: settings.String(), Settings: settings})
	}
	return s, nil
}

// combine returns each combination with each value of one more setting.
func combine(combinations []cells.Settings, name string, values []string) (all []cells.Settings) {
	for _, settings := range combinations {
		for _, value := range values {
			longer := cells.Settings{name: value}
			for other, v := range settings {
				longer[other] = v
			}
			all = append(all, longer)
		}
	}
	return all
}
