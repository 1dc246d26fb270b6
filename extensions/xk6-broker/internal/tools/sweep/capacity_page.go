package sweep

import (
	_ "embed" // the page's content
	"encoding/csv"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/capacity"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

//go:embed capacity.html
var capacityContent string

var capacityPage = report.Template(capacityContent)

// capacityView is what capacity.html shows.
type capacityView struct {
	Name       string
	Started    time.Time
	Objectives []measure.Objective
	Answer     string
	Found      bool
	Open       bool // the search goes on
	Charts     []string
	Rate       string
	Heads      []string
	Trials     []trialView
	Curve      []trialView
	Asked      []Fact
	Script     string // the name of its file
	With       Values // of the environment
}

type trialView struct {
	cellView
	Rate   int64
	Share  string
	Answer capacity.Answer
	Why    string
	Met    bool
}

func (s *Capacity) writeHTML(w io.Writer) error {
	o := s.outcome
	v := capacityView{
		Name: path.Base(s.Folder), Started: s.Journal.Started, Objectives: s.Objectives, Answer: s.Answer(), Rate: s.Rate, Asked: s.Journal.Asked,
		Found: o.Finding == capacity.Found || o.Finding == capacity.NotReached, Open: o.Probes == nil,
	}
	v.Script, _ = s.Journal.Fact("script")
	v.With = FromEnvironment(v.Asked)
	rows := Findings{Columns: s.Columns}
	for _, t := range s.trials {
		rows.Rows = append(rows.Rows, t.Row)
	}
	known := rows.known(rows.Rows)
	for _, c := range known {
		v.Heads = append(v.Heads, s.Columns[c].Label())
	}
	for _, t := range s.trials {
		tv := trialView{Rate: t.Rate, Answer: t.Answer, Why: t.Why, Met: t.Answer == capacity.Met}
		tv.Row, tv.Took = t.Row, t.Ended.Sub(t.Started).Round(100*time.Millisecond).String()
		for _, k := range known {
			tv.Columns = append(tv.Columns, numberView(s.Columns[k], t.Numbers[k]))
		}
		tv.Page, tv.Log = path.Join(CellsFolder, t.Cell.Folder, report.PageFile), path.Join(CellsFolder, t.Cell.Folder, LogFile)
		if t.Share > 0 {
			tv.Share = fmt.Sprintf("%g %%", 100*t.Share)
			v.Curve = append(v.Curve, tv)
			continue
		}
		v.Trials = append(v.Trials, tv)
	}
	p := report.Page{Title: v.Name, Body: &v}
	if chart, ok := s.chart(); ok {
		p.Charts, v.Charts = append(p.Charts, chart), append(v.Charts, chart.ID)
	}
	return p.Render(w, capacityPage)
}

// chart is the rate-latency curve: each latency over the rate, of all probes that say something of the system.
func (s *Capacity) chart() (report.Chart, bool) {
	chart := report.Chart{
		ID: "curve", Title: "latency over rate", Axis: "setting", Label: s.Rate, Unit: "ms", Log: true, Decades: true, Lines: []report.Line{},
		Note: "The median of the probes at each rate; the bars run from the least to the greatest.",
	}
	byRate := map[int64][]Trial{}
	var rates []int64
	for _, t := range s.trials {
		if t.Answer != capacity.Generator {
			if byRate[t.Rate] == nil {
				rates = append(rates, t.Rate)
			}
			byRate[t.Rate] = append(byRate[t.Rate], t)
		}
	}
	slices.Sort(rates)
	for _, r := range rates {
		chart.X, chart.Ticks = append(chart.X, float64(r)), append(chart.Ticks, strconv.FormatInt(r, 10))
	}
	for i, c := range s.Columns {
		if c.Unit != "ns" {
			continue
		}
		line := report.Line{Label: c.Label(), Colour: len(chart.Lines) % report.Palette}
		there := false
		for _, r := range rates {
			var rows []Row
			for _, t := range byRate[r] {
				rows = append(rows, t.Row)
			}
			var median, low, high *float64
			if of := spread(i, rows); of.Count > 0 {
				a, b, c := of.Median/1e6, of.Low/1e6, of.High/1e6
				median, low, high, there = &a, &b, &c, true
			}
			line.Values, line.Low, line.High = append(line.Values, median), append(line.Low, low), append(line.High, high)
		}
		if there {
			chart.Lines = append(chart.Lines, line)
		}
	}
	return chart, len(chart.Lines) > 0 && len(rates) > 1
}

// writeCSV writes a line for each probe, those of the curve with their share of the capacity.
func (s *Capacity) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := []string{"cell", "started", "seconds", s.Rate, "share of the capacity", "answer", "why"}
	for _, c := range s.Columns {
		head = append(head, title(c))
	}
	_ = out.Write(append(head, "valid", "confirmed means", "exit code")) // Error tells
	for _, t := range s.trials {
		share := ""
		if t.Share > 0 {
			share = strconv.FormatFloat(t.Share, 'f', -1, 64)
		}
		line := []string{
			strconv.Itoa(t.Cell.Index), t.Started.UTC().Format(time.RFC3339), strconv.FormatFloat(t.Ended.Sub(t.Started).Seconds(), 'f', 1, 64),
			strconv.FormatInt(t.Rate, 10), share, t.Answer.String(), t.Why,
		}
		for _, n := range t.Numbers {
			text := ""
			if n.Known {
				text = strconv.FormatFloat(n.Value, 'f', -1, 64)
			}
			line = append(line, text)
		}
		_ = out.Write(append(line, strconv.FormatBool(t.Valid), t.Meaning, strconv.Itoa(t.ExitCode)))
	}
	out.Flush()
	return out.Error()
}
