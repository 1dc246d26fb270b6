// Package bench compares the engine with loops written by hand on the same client library, and
// with the brokers' own tools. The loops of a comparison take turns, and the medians of the rounds
// count: on a shared machine only ratios from one run are meaningful.
package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// Rounds is how often each loop of a comparison runs, and ToolRounds how often a tool does.
const (
	Rounds     = 7
	ToolRounds = 3
)

// engineLoop is the name of the engine's loop.
const engineLoop = "engine"

// Loop is one way to move the messages of a comparison.
type Loop struct {
	Name string
	// Run moves them and returns how long that took.
	Run func() (time.Duration, error)
	// Before, if it is set, prepares the loop's turns. It is not timed.
	Before func() error
	// Tool is set if another program moves them. It takes part in the first [ToolRounds] rounds,
	// and its CPU time is not measured. A tool that fails is logged and left out.
	Tool bool
}

// Case is a comparison: the same messages, moved by several loops.
type Case struct {
	Name     string
	Messages int
	// Before, if it is set, prepares each loop's turn. It is not timed.
	Before func() error
	// Loops begin with a loop written by hand, which the others are compared with.
	Loops []Loop
}

// Row is the result of one loop.
type Row struct {
	Loop  string
	Rates []float64 // messages per second, of each round
	Costs []float64 // CPU time of this process per message, µs, of each round; 0 for a tool
	Ratio float64   // of the rates to the first loop's, the median over the rounds
}

// Compare runs the loops in turns, reports the ratios and writes a table, see [Write].
func (c Case) Compare(b *testing.B) []Row {
	b.Helper()
	load := LoadAverage()
	rows := make([]Row, len(c.Loops))
	order := make([]int, len(c.Loops))
	for i, l := range c.Loops {
		rows[i].Loop = l.Name
		order[i] = i
	}
	for round := range Rounds {
		for _, i := range order {
			tool := c.Loops[i].Tool
			if tool && (round >= ToolRounds || len(rows[i].Rates) < round) {
				continue
			}
			err := c.turn(i, &rows[i])
			if err != nil && !tool {
				b.Fatalf("%s: %s: %v", c.Name, rows[i].Loop, err)
			}
			if err != nil {
				b.Logf("%s: without %s: %v", c.Name, rows[i].Loop, err)
				rows[i].Rates = nil
			}
		}
		slices.Reverse(order) // the second loop finds the machine warm
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return len(r.Rates) == 0 })
	var table strings.Builder
	for i := range rows {
		r := &rows[i]
		r.Ratio = ratio(r.Rates, rows[0].Rates)
		b.ReportMetric(r.Ratio, strings.ReplaceAll(r.Loop, " ", "-")+"-ratio")
		fmt.Fprintf(&table, "%-46s  %-19s  %8.0f  %8.0f  %8.0f  %6.2f  %10.2f  %4.1f\n", c.Name, r.Loop,
			Median(r.Rates), slices.Min(r.Rates), slices.Max(r.Rates), r.Ratio, Median(r.Costs), load)
	}
	b.ReportMetric(0, "ns/op")
	if err := write(table.String()); err != nil {
		b.Fatal(err)
	}
	return rows
}

// turn runs a loop once and adds its rate and its cost to the row.
func (c Case) turn(i int, row *Row) error {
	for _, prepare := range []func() error{c.Before, c.Loops[i].Before} {
		if prepare == nil {
			continue
		}
		if err := prepare(); err != nil {
			return fmt.Errorf("before the loop: %w", err)
		}
	}
	before := machine.CPU()
	took, err := c.Loops[i].Run()
	if err != nil {
		return err
	}
	cost := machine.CPU() - before
	if c.Loops[i].Tool {
		cost = 0
	}
	row.Rates = append(row.Rates, float64(c.Messages)/took.Seconds())
	row.Costs = append(row.Costs, float64(cost.Nanoseconds())/1e3/float64(c.Messages))
	return nil
}

// ratio returns the median of the ratios of the rounds that both loops took part in.
func ratio(a, b []float64) float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return Median(ratios)
}

// Median returns the median, or NaN of no values.
func Median(values []float64) float64 { return stationary.Median(values) }

// Figure is a measured value that is not a rate.
type Figure struct {
	Case, Name string
	Value      float64
	Unit       string
	Load       float64 // the load average before the case
}

// Write appends figures, a line each, to the file that BENCH_TABLE names, if any.
func Write(figures ...Figure) error {
	var table strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&table, "%-44s  %-48s  %8.1f %-4s  %4.1f\n", f.Case, f.Name, f.Value, f.Unit, f.Load)
	}
	return write(table.String())
}

func write(text string) error {
	path := os.Getenv("BENCH_TABLE")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //gosec:disable G302 G304 G703 -- a report
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer f.Close() //nolint:errcheck // the write is checked
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// LoadAverage returns the system's load average of the last minute, or 0 if it is unavailable.
func LoadAverage() (load float64) {
	data, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(data), &load)
	}
	return load
}
