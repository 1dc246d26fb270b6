// Command table prints the rows that benchmarks wrote to a file of JSON lines.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: table FILE")
	}
	f, err := os.Open(args[0]) //gosec:disable G703 -- the file that was asked for
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "case\tloop\tmsg/s\tleast\tmost\tof raw\tengine is\tCPU µs/msg\tmore\tload")
	var figures []bench.Figure
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var line struct {
			bench.Row
			Name  string  `json:"figure"`
			Value float64 `json:"value"`
			Unit  string  `json:"unit"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if line.Name != "" {
			figures = append(figures, bench.Figure{Case: line.Case, Name: line.Name, Value: line.Value, Unit: line.Unit, Load: line.Load})
			continue
		}
		r := line.Row
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%s\t%s\t%s\t%s\t%.1f\n", r.Case, r.Loop, r.Median, slices.Min(r.Rates), slices.Max(r.Rates),
			known(r.Ratio), times(r.Engine), known(r.CPU), known(r.CPUMore), r.Load)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if len(figures) > 0 {
		fmt.Fprintln(w, "\ncase\tfigure\tvalue\tunit\tload")
	}
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%s\t%.1f\n", f.Case, f.Name, f.Value, f.Unit, f.Load)
	}
	return w.Flush()
}

// known shows what was measured, and a dash for what cannot be.
func known(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// times shows how many times as fast the engine is.
func times(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f×", v)
}
