// Package bench compares the engine with what someone would write by hand on the same client library. The loops of one comparison
// run in turns, several rounds of them, and the medians count: on a shared machine only ratios from one run mean anything.
package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/cpu"
)

// Rounds is how often each loop of a comparison runs.
const Rounds = 5

// Loop is one way to move the messages of a comparison.
type Loop struct {
	Name string
	// Run moves them and returns how long that took.
	Run func() (time.Duration, error)
}

// Row is the outcome of one loop. It is a line of the file that BENCH_JSON names.
type Row struct {
	Case     string    `json:"case"`
	Loop     string    `json:"loop"`
	Messages int       `json:"messages"`
	Rates    []float64 `json:"rates"` // messages per second, of each round
	Median   float64   `json:"median"`
	CPU      float64   `json:"cpu_us"`    // CPU of this process per message, µs, median
	Ratio    float64   `json:"ratio"`     // of the median rate to that of the first loop, which is the measure
	CPURatio float64   `json:"cpu_ratio"` // of the CPU per message of the first loop to this one's: 1 is as good, less is worse
}

// Compare runs the loops in turns, first the measure, then what is measured against it, and reports the ratios.
func Compare(b *testing.B, name string, messages int, loops ...Loop) []Row {
	b.Helper()
	rates, spent := make([][]float64, len(loops)), make([][]float64, len(loops))
	order := make([]int, len(loops))
	for i := range order {
		order[i] = i
	}
	for range Rounds {
		for _, i := range order {
			before := cpu.Time()
			took, err := loops[i].Run()
			if err != nil {
				b.Fatalf("%s: %s: %v", name, loops[i].Name, err)
			}
			rates[i] = append(rates[i], float64(messages)/took.Seconds())
			spent[i] = append(spent[i], float64((cpu.Time()-before).Microseconds())/float64(messages))
		}
		slices.Reverse(order) // whoever comes second finds the machine warm
	}
	rows := make([]Row, len(loops))
	for i, l := range loops {
		rows[i] = Row{Case: name, Loop: l.Name, Messages: messages, Rates: rates[i], Median: median(rates[i]), CPU: median(spent[i])}
		rows[i].Ratio = rows[i].Median / rows[0].Median
		rows[i].CPURatio = rows[0].CPU / rows[i].CPU
		if i > 0 {
			b.ReportMetric(rows[i].Ratio, l.Name+"-ratio")
			b.ReportMetric(rows[i].CPURatio, l.Name+"-cpu-ratio")
		}
	}
	b.ReportMetric(0, "ns/op")
	if err := Write(rows); err != nil {
		b.Fatal(err)
	}
	return rows
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// Write appends rows to the file that BENCH_JSON names, if any.
func Write(rows []Row) error {
	path := os.Getenv("BENCH_JSON")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // the user names it
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
