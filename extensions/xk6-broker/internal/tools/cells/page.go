package cells

import (
	"cmp"
	_ "embed" // the page's content
	"encoding/csv"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// The files of a study.
const (
	PageFile   = "index.html"
	TablesFile = "tables.md"
	CSVFile    = "cells.csv" // the last table
	JSONFile   = "study.json"
)

//go:embed page.html
var htmlText string

//go:embed tables.md.tmpl
var markdownText string

var (
	htmlPage = report.Template(htmlText)
	markdown = template.Must(template.New("").Funcs(template.FuncMap{"cell": inCell}).Parse(markdownText))
)

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
	Text  string
	Raw   string // in CSV instead of Text: nanoseconds of a duration
	Title string // an explanation, such as why a number is not reliable
	Link  string
}

// Write writes the page into a folder.
func (p Page) Write(folder string) error {
	html := report.Page{Title: p.Title, Charts: p.Charts, Body: p}
	files := map[string]func(io.Writer) error{
		PageFile:   func(w io.Writer) error { return html.Render(w, htmlPage) },
		TablesFile: func(w io.Writer) error { return markdown.Execute(w, p) },
		CSVFile:    p.Tables[len(p.Tables)-1].csv,
		JSONFile:   func(w io.Writer) error { return json.NewEncoder(w).Encode(p) },
	}
	for name, write := range files {
		if err := report.WriteAtomic(filepath.Join(folder, name), write); err != nil {
			return err
		}
	}
	return nil
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

// inCell returns a text as it stands in a cell of a Markdown table.
func inCell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }
