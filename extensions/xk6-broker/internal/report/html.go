package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

//go:embed assets page.html run.html
var assets embed.FS

// pages are the templates of all pages: a frame, page.html, and what stands in it.
var pages = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"asset":    asset,
	"licensed": licensed,
	"script":   func(text string) template.JS { return template.JS(text) },   //gosec:disable G203 -- an asset of its own
	"style":    func(text string) template.CSS { return template.CSS(text) }, //gosec:disable G203 -- an asset of its own
	"duration": Duration,
	"count":    count,
	"percent":  func(share float64) float64 { return 100 * share },
	"time":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"quantile": verdict.QuantileName,
	"options":  factsOf,
	"vus":      vus,
	"outcome":  outcome,
	"validity": Validity,
	"texts":    reason.Texts,
	"machine":  machineRows,
	"at":       func(c cell, label string) labelled { return labelled{c, label} },
}).ParseFS(assets, "page.html"))

func asset(name string) (string, error) {
	text, err := assets.ReadFile("assets/" + name)
	return string(text), err
}

// licensed is a script behind the licences of what is in it, which go where it goes. The template would leave out a comment of its own.
func licensed(name string) (string, error) {
	licences, err := asset("LICENSES.txt")
	if err != nil {
		return "", err
	}
	text, err := asset(name)
	return "/*\n" + licences + "*/\n" + text, err
}

var runPage = template.Must(template.Must(pages.Clone()).ParseFS(assets, "run.html"))

// Page is a page of charts and tables that needs nothing but itself.
type Page struct {
	Title  string
	Charts []Chart // all that the page draws
	Body   any
}

// Render writes the page with a template that Template made.
func (p Page) Render(w io.Writer, t *template.Template) error {
	var b bytes.Buffer
	if p.Charts == nil {
		p.Charts = []Chart{}
	}
	if err := t.ExecuteTemplate(&b, "page.html", p); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

// Template makes the template of a page whose content is the text, which defines "content".
func Template(text string) *template.Template {
	return template.Must(template.Must(pages.Clone()).Parse(text))
}

// runView is what run.html shows.
type runView struct {
	*result.Result
	Name    string
	Topics  []topicView
	Total   *topicView // where there are many topics
	Columns []string   // of the latencies in Lines
	Lines   []line
}

// Measured lends a topic its fields; the name of one of them is Topic.
type Measured = result.Topic

type topicView struct {
	*Measured
	ID       string
	Table    tableView
	Account  accountView
	Charts   []string // their ids
	Users    []user
	Counts   []countRow
	Phases   []phaseRow
	Observed bool // whether anybody received, so that loss is known
}

// labelled is a cell with the name of its column, which a narrow screen shows beside it.
type labelled struct {
	Cell  cell
	Label string
}

// tableView is a table of latencies.
type tableView struct {
	Columns       []string
	Rows          []row
	Owed, Doubted bool // some cell is
	OpenLoop      bool
}

func newTableView(t *result.Topic) tableView {
	v := tableView{OpenLoop: t.OpenLoop}
	v.Columns, v.Rows = tableOf(t)
	for _, r := range v.Rows {
		for _, c := range r.Cells {
			v.Doubted = v.Doubted || c.Known && c.Doubted
			v.Owed = v.Owed || c.Known && c.Owed && !c.Doubted
		}
	}
	return v
}

type countRow struct {
	Name, Doc string
	Count     int64
}

// HTML writes the page of one run.
func HTML(w io.Writer, r *result.Result) error {
	view := runView{Result: r, Name: r.Name}
	if view.Name == "" {
		view.Name = "run of " + r.Started.UTC().Format("2006-01-02 15:04:05")
	}
	page := Page{Title: view.Name}
	during := r.Led()
	if len(r.Topics) > few {
		all := verdict.Total(r)
		of := verdict.Total(during)
		view.Total = &topicView{Measured: &all, ID: "total", Table: newTableView(&of), Account: newAccountView(all.Groups)}
		view.Total.Phases = phasesOf(r, verdict.Total)
		view.Columns, view.Lines = linesOf(during)
		if c, ok := curves("total-", &of); ok {
			page.Charts = append(page.Charts, c)
			view.Total.Charts = append(view.Total.Charts, c.ID)
		}
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		tv := topicView{
			Measured: t, ID: fmt.Sprintf("topic%d", i+1), Table: newTableView(&during.Topics[i]), Account: newAccountView(t.Groups), Users: usersOf(t), Observed: len(t.Groups) > 0 || t.Counts["sent"] == 0,
		}
		tv.Phases = phasesOf(r, func(of *result.Result) result.Topic { return of.Topics[i] })
		for _, c := range charts(tv.ID+"-", t, &during.Topics[i]) {
			c.mark(r.Marks)
			page.Charts = append(page.Charts, c)
			tv.Charts = append(tv.Charts, c.ID)
		}
		for c := range recording.Counter(recording.NumCounters) {
			if n, ok := t.Counts[c.String()]; ok || c.Always() && !(t.OnlySends && c.Consumers()) {
				tv.Counts = append(tv.Counts, countRow{c.String(), c.Doc(), n})
			}
		}
		view.Topics = append(view.Topics, tv)
	}
	page.Body = view
	return page.Render(w, runPage)
}

// count writes a number with a thin space between its thousands.
func count(n any) string {
	digits := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}
