// Command methodology writes the tables of docs/evidence/lies.md from real runs (packages stall,
// lies).
//
//	methodology K6 JETSTREAM-URL DOCUMENT
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/lies"
	"github.com/xk6-broker/xk6-broker/e2e/stall"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-nats"
)

const (
	stalls    = "<!-- generated: stall -->\n"
	falsehood = "<!-- generated: lies -->\n"
	end       = "<!-- end -->"
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
	rows := []stall.Row{stall.Theory()}
	for _, way := range stall.Ways() {
		fmt.Fprintf(os.Stderr, "running %s\n", way.Name)
		row, err := stall.Run(k6, url, way)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	var falsehoods strings.Builder
	falsehoods.WriteString("| what misleads | provoked by | what would be believed | verdict | what is said |\n")
	falsehoods.WriteString("|---|---|---|---|---|\n")
	for _, lie := range lies.All() {
		fmt.Fprintf(os.Stderr, "running %s\n", lie.Name)
		o, err := lies.Run(k6, url, lie)
		if err != nil {
			return err
		}
		reason, ok := o.Result.Verdict.Find(lie.Code, lie.Why)
		if !ok {
			return fmt.Errorf("%s: no reason in the verdict: %+v", lie.Name, o.Result.Verdict)
		}
		text := strings.TrimLeft(strings.TrimPrefix(reason.Text, reason.Topic), ",: ")
		fmt.Fprintf(&falsehoods, "| %s | %s | %s: %s | %s | `%s`: %s |\n",
			lie.Name, lie.How, lie.Naive.Label, lie.Naive.Value(o), o.Verdict(), reason.Code, text)
	}
	text, err := os.ReadFile(document) //gosec:disable G304 G703 -- in this repository
	if err != nil {
		return err
	}
	written, err := replace(string(text), stalls, table(rows))
	if err == nil {
		written, err = replace(written, falsehood, falsehoods.String())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	return os.WriteFile(document, []byte(written), 0o644) //gosec:disable G306 G703 -- a public document
}

// replace replaces a generated table.
func replace(text, begin, table string) (string, error) {
	head, rest, ok := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("there is no place for the table %s", strings.TrimSpace(begin))
	}
	return head + begin + table + end + tail, nil
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
		fmt.Fprintf(&b, " %s | %s |\n", ms(r.Latency.Max), verdict)
	}
	return b.String()
}

func ms(ns int64) string { return fmt.Sprintf("%.1f ms", float64(ns)/float64(time.Millisecond)) }
