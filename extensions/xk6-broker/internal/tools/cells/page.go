package cells

import (
	"cmp"
	_ "embed" // the page's content
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// The files of a study.
const (
	PageFile   = "index.html"
	TablesFile = "tables.md"
	CSVFile    = "cells.csv" // the last table
)

//go:embed page.html
var content string

var template = report.Template(content)

// Page shows a study as HTML, without the charts as Markdown, and its last table as CSV.
type Page struct {
	Title   string
	Intro   []Text
	Verdict string // one line; "" for none
	Valid   bool
	Lists   []List
	Charts  []report.Chart
	Tables  []Table
	Asked   Facts
}

// List is a list of texts.
type List struct {
	Title string
	Items []string
}

// Table is a table. The first column names the row.
type Table struct {
	Title string
	Note  string
	Heads []string
	Rows  [][]Text
}

// Text is a cell of a table, or a paragraph.
type Text struct {
	Text    string
	Raw     string // in CSV instead of Text: nanoseconds of a duration
	Title   string
	Link    string
	Doubted bool // it is not reliable, for the reason in Title
}

// Write writes the page into a folder.
func (p Page) Write(folder string) error {
	err := report.WriteAtomic(filepath.Join(folder, PageFile), func(w io.Writer) error {
		return report.Page{Title: p.Title, Charts: p.Charts, Body: p}.Render(w, template)
	})
	if err != nil {
		return err
	}
	err = report.WriteAtomic(filepath.Join(folder, TablesFile), func(w io.Writer) error {
		_, err := io.WriteString(w, p.markdown())
		return err
	})
	if err != nil {
		return err
	}
	return report.WriteAtomic(filepath.Join(folder, CSVFile), p.Tables[len(p.Tables)-1].csv)
}

func (t Table) csv(w io.Writer) error {
	lines := [][]string{t.Heads}
	for _, row := range t.Rows {
		var line []string
		for _, text := range row {
			line = append(line, cmp.Or(text.Raw, text.Text))
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

func (p Page) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", p.Title)
	for _, t := range p.Intro {
		b.WriteString(strings.TrimPrefix(t.markdown()+"\n\n", "\n\n"))
	}
	if p.Verdict != "" {
		fmt.Fprintf(&b, "%s\n\n", p.Verdict)
	}
	for _, l := range p.Lists {
		if len(l.Items) > 0 {
			fmt.Fprintf(&b, "%s:\n\n- %s\n\n", l.Title, strings.Join(l.Items, "\n- "))
		}
	}
	for _, t := range p.Tables {
		t.markdown(&b)
	}
	return b.String()
}

func (t Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n", t.Title)
	if t.Note != "" {
		fmt.Fprintf(b, "%s\n\n", t.Note)
	}
	fmt.Fprintf(b, "| %s |\n|---|%s\n", strings.Join(t.Heads, " | "), strings.Repeat("---:|", len(t.Heads)-1))
	for _, row := range t.Rows {
		for _, text := range row {
			fmt.Fprintf(b, "| %s ", text.markdown())
		}
		b.WriteString("|\n")
	}
	b.WriteString("\n")
}

var inCell = strings.NewReplacer("|", `\|`, "\n", " ")

func (t Text) markdown() string {
	text := inCell.Replace(t.Text)
	if t.Link != "" {
		return fmt.Sprintf("[%s](%s)", text, t.Link)
	}
	return text
}
