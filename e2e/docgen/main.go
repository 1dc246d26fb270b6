// Command docgen writes the documents' tables of drivers, options and reasons, and the types of
// options and results. Given the repository's folder, it replaces the text between the markers of
// each table, and the files of types.
package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	_ "github.com/xk6-broker/xk6-broker"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docgen REPOSITORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func write(repository string) error {
	if err := record(repository); err != nil {
		return err
	}
	files, err := current(repository)
	if err != nil {
		return err
	}
	for path, text := range files {
		path = filepath.Join(repository, path)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //gosec:disable G306 G703 -- a public document
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// current returns the texts of the generated files, by their paths in the repository.
func current(repository string) (map[string]string, error) {
	files, err := declarations(repository)
	if err != nil {
		return nil, err
	}
	proven, err := outcomes(repository)
	if err != nil {
		return nil, err
	}
	reasons, err := reasons(repository)
	if err != nil {
		return nil, err
	}
	tables := documents(proven)
	tables["docs/verdicts.md"] = map[string]string{"reasons": reasons}
	for path, tables := range tables {
		text, err := os.ReadFile(filepath.Join(repository, path)) //gosec:disable G304 G703 -- in this repository
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		if files[path], err = render(string(text), tables); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

// documents returns the tables of each file, by the names in their markers.
func documents(proven map[string]drivertest.Outcome) map[string]map[string]string {
	return map[string]map[string]string{
		"README.md":       {"drivers": drivers(proven)},
		"docs/brokers.md": {"features": features(proven), "options": options()},
	}
}

// reasonTable prints the table of reasons, whose package is internal to another module.
const reasonTable = "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/table"

func reasons(repository string) (string, error) {
	cmd := exec.Command("go", "run", reasonTable)
	cmd.Dir, cmd.Stderr = filepath.Join(repository, "e2e"), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("reasons: %w", err)
	}
	return string(text), nil
}

func render(text string, tables map[string]string) (string, error) {
	for name, table := range tables {
		begin, end := "<!-- generated: "+name+" -->\n", "<!-- end -->"
		head, rest, ok := strings.Cut(text, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return "", fmt.Errorf("no place for the table %q", name)
		}
		text = head + begin + table + end + tail
	}
	return text, nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "–"
}

// requests names the way of requests and replies.
func requests(f driver.Features) string {
	switch {
	case f.Requests:
		return "the broker's own"
	case f.Start != 0:
		return "two topics"
	}
	return "–"
}

// drivers is a row for each driver: its URL, its guarantees, and the server that proved them.
func drivers(proven map[string]drivertest.Outcome) string {
	var b strings.Builder
	b.WriteString("| driver | URL | confirmed means at most | delivery | proven on |\n|---|---|---|---|---|\n")
	for _, d := range driver.Drivers() {
		fmt.Fprintf(&b, "| `%s` | `%s:` | %s | %s | %s |\n",
			d.Name, d.Schemes[0], d.Features.Confirm, delivery(d.Features), provenOn(proven, d.Name))
	}
	return b.String()
}

func delivery(f driver.Features) string {
	if f.Start == 0 {
		return "–" // it only sends
	}
	return f.Deliver.String()
}

// features returns a row for each driver.
func features(proven map[string]drivertest.Outcome) string {
	columns := []string{
		"driver",
		"URL",
		"confirmed means at most",
		"delivery",
		"order",
		"settle",
		"start",
		"groups",
		"fan-out",
		"replay",
		"key",
		"headers",
		"attempts",
		"tombstones",
		"request/reply",
		"received message has",
		"confirmed message has",
		"conformance",
	}
	var b strings.Builder
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(columns...)
	b.WriteString("|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, d := range driver.Drivers() {
		f := d.Features
		received, confirmed := place(f)
		row(
			"`"+d.Name+"`", "`"+strings.Join(d.Schemes, ":` `")+":`", f.Confirm.String(), delivery(f), f.Order.String(),
			set(f.Settle, driver.Ack, driver.Requeue, driver.Reject),
			set(f.Start, driver.StartNew, driver.StartEarliest), yes(f.Groups), yes(f.Fanout), yes(f.Replay),
			yes(f.Key), yes(f.Headers), yes(f.Attempts), yes(f.Tombstones), requests(f), received, confirmed,
			conformance(proven, d.Name),
		)
	}
	return b.String()
}

// place names the parts of the place of a received message, and of a confirmed one.
func place(f driver.Features) (received, confirmed string) {
	var where []string
	if f.Partitions {
		where = append(where, "partition")
	}
	if f.Position != driver.NoPosition {
		where = append(where, f.Position.String())
	}
	if f.Receipts {
		confirmed = strings.Join(where, ", ")
	}
	if f.Timestamps {
		where = append(where, "timestamp")
	}
	return cmp.Or(strings.Join(where, ", "), yes(false)), cmp.Or(confirmed, yes(false))
}

func set[T interface {
	~uint8
	fmt.Stringer
}](have T, all ...T) string {
	var names []string
	for _, one := range all {
		if have&one != 0 {
			names = append(names, one.String())
		}
	}
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(names, ", ")
}

// options returns a section for each driver.
func options() string {
	var b strings.Builder
	for _, d := range driver.Drivers() {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", d.Name, d.Doc)
		b.WriteString("| option | where | type | default | what it does |\n|---|---|---|---|---|\n")
		for _, o := range d.Options {
			doc := strings.ReplaceAll(o.Doc, "|", "\\|")
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.Name, scopes(o.Scope), kind(o), defaults(o), doc)
		}
	}
	b.WriteString("\n")
	return b.String()
}

func scopes(s driver.Scope) string {
	var names []string
	for scope, name := range []string{"connect", "producer", "consumer", "createTopic", "message"} {
		if s&(1<<scope) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func kind(o driver.Option) string {
	text := o.Type.String()
	if o.Type == driver.Enum {
		text = strings.Join(o.Allowed, " \\| ")
	}
	if o.Secret {
		text += ", secret"
	}
	return text
}

func defaults(o driver.Option) string {
	var parts []string
	if o.Default != "" {
		parts = append(parts, "`"+o.Default+"`")
	}
	for _, p := range []driver.Profile{driver.Latency, driver.Throughput, driver.Durable} {
		if v, ok := o.Profile[p]; ok {
			parts = append(parts, fmt.Sprintf("%s `%s`", p, v))
		}
	}
	return strings.Join(parts, "; ")
}
