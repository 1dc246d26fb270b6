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
	f, err := os.Open(args[0])
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	defer f.Close() //nolint:errcheck // only read
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\tloop\tmsg/s (median)\tleast\tmost\tof raw\tengine is times\tCPU µs/msg\tCPU of raw\tload\t")
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r bench.Row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%s\t%s\t%s\t%s\t%.1f\t\n", r.Case, r.Loop, r.Median, slices.Min(r.Rates), slices.Max(r.Rates),
			known(r.Ratio), known(r.Engine), known(r.CPU), known(r.CPURatio), r.Load)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return w.Flush() //nolint:wrapcheck // standard output
}

// known shows what was measured, and a dash for what cannot be.
func known(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}
