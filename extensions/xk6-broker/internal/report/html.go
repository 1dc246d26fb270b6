package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

//go:embed assets page.html run.html
var assets embed.FS

// pages are the templates of all pages: a frame, its tables, and its content.
var pages = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"meaning":    meaning,
	"users":      func(t *result.Topic) Table { return usersOf(t, nil) },
	"scenarios":  scenariosOf,
	"thresholds": thresholdsOf,
	"broker":     broker,
	"latencies":  latencies,
	"account":    accountOf,
	"unobserved": unobservedReason,
	"counts":     countsOf,
	"errors":     errorsOf,
	"hiccups": func(h *hist.Histogram) Table {
		return percentiles("hiccups", []distribution{{label: "a thread that wakes every ms was late by", values: h}})
	},
	"script":   func(name string) (template.JS, error) { return text[template.JS](name) },
	"style":    func(name string) (template.CSS, error) { return text[template.CSS](name) },
	"percent":  func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
	"time":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"quantile": verdict.QuantileName,
	"validity": Validity,
	"texts":    reason.Texts,
}).ParseFS(assets, "page.html"))

// text reads an asset.
func text[T ~string](name string) (T, error) {
	content, err := assets.ReadFile("assets/" + name)
	return T(content), err
}

var runPage = template.Must(template.Must(pages.Clone()).ParseFS(assets, "run.html"))

// Page is a page of charts and tables that needs no other file.
type Page struct {
	Title  string
	Charts []Chart // all that the page draws
	Body   any

	Histories []map[string]any // topics over time, which the page draws
}

// Template returns the template of a page whose content the text defines as "content".
func Template(text string) *template.Template {
	return template.Must(template.Must(pages.Clone()).Parse(text))
}

// Render writes the page with a template of Template.
func (p Page) Render(w io.Writer, t *template.Template) error {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "page.html", p); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

// runView is the content of run.html.
type runView struct {
	*result.Result
	Sections []section
	Lines    Table // of many topics
}

// HTML writes the page of one run.
func HTML(w io.Writer, r *result.Result) error {
	view := runView{Result: r, Sections: sections(r)}
	if len(r.Topics) > few {
		view.Lines = topicsOf(r.Led())
	}
	page := Page{Title: r.Name, Body: &view}
	for _, s := range view.Sections {
		if chart := curves(s.ID+"-curves", &s.Leading); len(chart.Lines) > 0 {
			page.Charts = append(page.Charts, chart)
		}
		page.Histories = append(page.Histories, map[string]any{
			"id": s.ID, "points": s.Run.History, "overTime": s.Run.OverTime, "marks": r.Marks,
		})
	}
	return page.Render(w, runPage)
}
