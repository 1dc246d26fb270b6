// Command methodology writes the table of docs/methodology.md that shows what each way to drive load reports of a stall:
//
//	methodology K6 JETSTREAM-URL DOCUMENT
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/k6/stall"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-nats"
)

const (
	begin = "<!-- generated: stall -->\n"
	end   = "<!-- end -->"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: methodology K6 JETSTREAM-URL DOCUMENT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "methodology:", err)
		os.Exit(1)
	}
}

func run(k6, url, document string) error {
	text, err := os.ReadFile(document) //nolint:gosec // the caller's own
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table", document)
	}
	rows := []stall.Row{stall.Theory()}
	for _, way := range stall.Ways() {
		fmt.Fprintf(os.Stderr, "running %s\n", way.Name)
		row, err := stall.Run(k6, url, way)
		if err != nil {
			return err //nolint:wrapcheck // it says what it is of
		}
		rows = append(rows, row)
	}
	return os.WriteFile(document, []byte(head+begin+table(rows)+end+tail), 0o644) //nolint:gosec,wrapcheck // a document for all to read
}

func table(rows []stall.Row) string {
	var b strings.Builder
	b.WriteString("| driven by | sent | dropped |")
	for _, q := range stall.Quantiles {
		fmt.Fprintf(&b, " p%v |", 100*q)
	}
	b.WriteString(" max | verdict |\n|" + strings.Repeat("---|", 5+len(stall.Quantiles)) + "\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %d |", r.Name, r.Sent, r.Dropped)
		for _, q := range stall.Quantiles {
			fmt.Fprintf(&b, " %s |", ms(r.Latency.Quantile(q)))
		}
		verdict := "valid"
		if !r.Valid {
			verdict = "not valid"
		}
		if r.Name == "arithmetic" {
			verdict = ""
		}
		fmt.Fprintf(&b, " %s | %s |\n", ms(r.Latency.Max()), verdict)
	}
	return b.String()
}

func ms(ns int64) string { return fmt.Sprintf("%.1f ms", float64(ns)/float64(time.Millisecond)) }
