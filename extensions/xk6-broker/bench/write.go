package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Figure is something measured that is no rate.
type Figure struct {
	Case  string  `json:"case"`
	Name  string  `json:"figure"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Load  float64 `json:"load"` // as in [Row]
}

// Write appends rows or figures to the file that BENCH_JSON names, if any, a line each.
func Write[T Row | Figure](rows ...T) error {
	path := os.Getenv("BENCH_JSON")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //gosec:disable G302 G304 G703 -- anybody may read it
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer f.Close() //nolint:errcheck // each row is one write, checked below
	for _, row := range rows {
		line, err := json.Marshal(row)
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return nil
}

// unit turns a loop's name into what may be part of a benchmark's unit.
func unit(name string) string { return strings.ReplaceAll(name, " ", "-") }

// LoadAverage is how many tasks wanted to run, on average over the last minute; 0 where the system does not tell.
func LoadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var minute float64
	if _, err := fmt.Sscan(string(data), &minute); err != nil {
		return 0
	}
	return minute
}
