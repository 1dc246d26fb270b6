// Command table prints the rows that benchmarks wrote to a file of JSON lines.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
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
	fmt.Fprintln(w, "case\tloop\tmsg/s (median)\tmin\tmax\tCPU µs/msg\tratio\tCPU ratio\t")
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r bench.Row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		least, most := r.Rates[0], r.Rates[0]
		for _, rate := range r.Rates {
			least, most = min(least, rate), max(most, rate)
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t\n", r.Case, r.Loop, r.Median, least, most, r.CPU, r.Ratio, r.CPURatio)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return w.Flush() //nolint:wrapcheck // standard output
}
