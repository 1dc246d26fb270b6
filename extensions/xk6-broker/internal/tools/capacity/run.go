package capacity

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// Run searches for the greatest rate at which a script meets its objectives, and then runs it at shares of that rate.
type Run struct {
	Search     Search
	Objectives []measure.Objective
	Rate       string        // the setting that is the rate
	Length     string        // the setting that is how long messages are sent
	WarmUp     time.Duration // of each probe
	Window     time.Duration // of each probe, after its warm-up
	Columns    []measure.Measure
	Folder     string
	Journal    *sweep.Journal
	Cell       func(context.Context, sweep.Cell) (sweep.Outcome, error) // [sweep.Runner.Run]
	Out        io.Writer

	rows    []sweep.Row
	trials  []trial // of the rows
	outcome Outcome
	perUnit float64 // messages due per second, for each of the rate
}

// trial is a probe that was run.
type trial struct {
	rate   int64
	share  float64 // of the capacity, on the rate-latency curve; 0 in the search
	answer Answer
	why    string
}

// shares are those of the capacity on the rate-latency curve.
var shares = []float64{0.1, 0.5, 0.7, 0.9, 0.95}

// attempts is how many runs of a probe may have no result.
const attempts = 3

// Do searches until the answer is known, and then measures the curve. When stop is closed it ends after the running
// probe, and when ctx ends, with it.
func (r *Run) Do(ctx context.Context, stop <-chan struct{}) error {
	r.say("%s from %d on, %d probes at most, of %v each after a warm-up of %v", r.Rate, r.Search.From, r.Search.Probes, r.Window, r.WarmUp)
	var err error
	r.outcome, err = r.Search.Run(ctx, func(ctx context.Context, rate int64) (Answer, error) {
		return r.probe(ctx, stop, rate, 0)
	})
	if err != nil {
		return err
	}
	if r.outcome.Finding == Found || r.outcome.Finding == NotReached {
		r.say("\n%s\nThe rate-latency curve:", r.Answer())
		for _, share := range shares {
			if _, err := r.probe(ctx, stop, max(1, int64(math.Round(share*float64(r.outcome.Low)))), share); err != nil {
				return err
			}
		}
	}
	r.say("\n%s", r.Answer())
	return r.write()
}

// probe runs the script at one rate until there is a result, and judges that.
func (r *Run) probe(ctx context.Context, stop <-chan struct{}, rate int64, share float64) (Answer, error) {
	index := len(r.trials) + 1
	cell := sweep.Cell{Index: index, Repetition: 1, Folder: fmt.Sprintf("%03d-%s-%d", index, report.Sanitise(r.Rate), rate), Settings: r.settings(rate)}
	o, done := r.Journal.Outcome(cell)
	if before, _ := r.Journal.Record(index); done && !slices.Equal(before.Settings, cell.Settings) {
		return 0, fmt.Errorf("the journal has another probe in the place of %s: begin anew with another --out", cell.Settings)
	}
	for attempt := 1; !done; attempt++ {
		select {
		case <-stop:
			return 0, sweep.ErrStopped
		default:
		}
		var err error
		if o, err = r.Cell(ctx, cell); err == nil {
			err = r.Journal.Add(o)
		}
		switch {
		case err != nil:
			return 0, err
		case o.Cut:
			return 0, sweep.ErrStopped
		case o.Result == nil && attempt == attempts:
			return 0, fmt.Errorf("%d probes at %s=%d in a row have no result: %s", attempts, r.Rate, rate, o.Error)
		case o.Result == nil:
			r.say("[%d] %s=%d FAILED, and is run again: %s", index, r.Rate, rate, o.Error)
		}
		done = o.Result != nil
	}
	t := trial{rate: rate, share: share}
	var err error
	if t.answer, t.why, err = Judge(o.Result, r.Objectives); err != nil {
		return 0, err
	}
	if t.answer == Unjudged && share == 0 {
		return 0, fmt.Errorf("%s=%d: %s: probe for longer (--probe), from a greater rate (--from), or ask for what the script measures", r.Rate, rate, t.why)
	}
	if err := r.checkRate(t, o); err != nil {
		return 0, err
	}
	r.rows, r.trials = append(r.rows, sweep.NewRow(o, r.Columns)), append(r.trials, t)
	r.say("%s", r.line(index-1))
	return t.answer, r.write()
}

func (r *Run) settings(rate int64) sweep.Values {
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
	return sweep.Values{
		{Name: r.Rate, Value: strconv.FormatInt(rate, 10)}, {Name: r.Length, Value: seconds(r.WarmUp + r.Window)}, {Name: "BROKER_WARMUP", Value: seconds(r.WarmUp)},
	}
}

// Plan returns the first probe as a plan of one cell, to check its settings.
func (r *Run) Plan() sweep.Plan {
	p := sweep.Plan{Repeat: 1}
	for _, v := range r.settings(r.Search.From) {
		p.Settings = append(p.Settings, sweep.Setting{Name: v.Name, Values: []string{v.Value}})
	}
	return p
}

// checkRate returns an error if the messages due do not follow the rate, by the probes that met the objectives.
func (r *Run) checkRate(t trial, o sweep.Outcome) error {
	due, err := measure.Rate("due").OfRun(o.Result)
	if err != nil || t.answer != Met {
		return nil //nolint:nilerr // nothing can be checked
	}
	if r.perUnit == 0 {
		r.perUnit = due / float64(t.rate)
	}
	if expected := r.perUnit * float64(t.rate); due < 0.8*expected || due > 1.25*expected {
		return fmt.Errorf("%s=%d produced %.4g msg/s, expected %.4g as in the first probe: does the script use %s?", r.Rate, t.rate, due, expected, r.Rate)
	}
	return nil
}

func (r *Run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Out, format+"\n", args...) // a closed terminal does not end a search
}

// line returns a probe in one line.
func (r *Run) line(i int) string {
	t := r.trials[i]
	text := fmt.Sprintf("[%d] %s=%d: %s", i+1, r.Rate, t.rate, t.answer)
	if t.why != "" {
		text += " (" + t.why + ")"
	}
	if r.rows[i].Others != "" {
		text += ", " + r.rows[i].Others
	}
	for k, c := range r.Columns {
		if n := r.rows[i].Numbers[k]; n.Known {
			text += ", " + c.Label() + " " + n.Show(c).Text
		}
	}
	return text
}

// Answer returns the finding in words.
func (r *Run) Answer() string {
	o, probes, others := r.outcome, 0, 0
	for i, t := range r.trials {
		if t.share == 0 {
			probes++
		}
		if r.rows[i].Others != "" {
			others++
		}
	}
	sure := fmt.Sprintf("with a confidence of %g %%, after %d probes", 100*r.Search.Confidence, probes)
	between := fmt.Sprintf("between %s=%d and %d (%.2g %%)", r.Rate, o.Low, o.High, 100*(float64(o.High)/float64(max(1, o.Low))-1))
	var text string
	switch o.Finding {
	case Found:
		text = fmt.Sprintf("The capacity is %s, %s.", between, sure)
	case TooLittle:
		text = fmt.Sprintf("Not even %s=%d meets the objectives, %s: %s.", r.Rate, r.Search.From, sure, r.lastWhy())
	case NotReached:
		text = fmt.Sprintf("The highest allowed rate, %s=%d, still meets the objectives, %s: the capacity is more.", r.Rate, r.Search.To, sure)
	case GeneratorFirst:
		text = fmt.Sprintf("The generator ended first, %s: the system's capacity is more than %d: %s.", between, o.Low, r.lastWhy())
	case NoSteadyState:
		text = fmt.Sprintf("There is no steady state: the system changed during the search, after %d probes: %s.", probes, r.lastWhy())
	default:
		text = fmt.Sprintf("The probes ended before the capacity was known: %s, %s. Longer probes (--probe) or more (--probes) narrow it.", between, sure)
	}
	if others > 0 {
		text += fmt.Sprintf(" It was not the only load: %d probes received messages of other tests.", others)
	}
	return text
}

// lastWhy returns the reason of the last probe that did not meet the objectives.
func (r *Run) lastWhy() string {
	for _, t := range slices.Backward(r.trials) {
		if t.why != "" {
			return t.why
		}
	}
	return "no reason"
}

// Asked returns the facts of the search.
func (r *Run) Asked() []sweep.Fact {
	facts := []sweep.Fact{
		{What: "--rate-setting", Is: r.Rate},
		{What: "--length-setting", Is: r.Length},
		{What: "--from", Is: strconv.FormatInt(r.Search.From, 10)},
		{What: "--to", Is: strconv.FormatInt(r.Search.To, 10)},
		{What: "--width", Is: fmt.Sprintf("%g%%", 100*r.Search.Width)},
		{What: "--confidence", Is: fmt.Sprintf("%g%%", 100*r.Search.Confidence)},
		{What: "--probe", Is: r.Window.String()},
		{What: "--warmup", Is: r.WarmUp.String()},
		{What: "--probes", Is: strconv.Itoa(r.Search.Probes)},
	}
	for i, o := range r.Objectives {
		facts = append(facts, sweep.Fact{What: fmt.Sprintf("--objective %d", i+1), Is: o.Text})
	}
	return facts
}

func (r *Run) write() error {
	var objectives []string
	for _, o := range r.Objectives {
		objectives = append(objectives, o.Text)
	}
	script, _ := r.Journal.Fact("script")
	page := sweep.Page{
		Title: filepath.Base(r.Folder), Asked: r.Journal.Asked, Verdict: "The search goes on",
		When: fmt.Sprintf("%s · %s · the greatest %s with %s", script, r.Journal.Started.UTC().Format("2006-01-02 15:04:05 UTC"), r.Rate, strings.Join(objectives, " and ")),
	}
	if r.outcome.Probes != nil {
		page.Verdict, page.Class = r.Answer(), "invalid"
		if r.outcome.Finding == Found || r.outcome.Finding == NotReached {
			page.Class = "valid"
		}
	}
	r.draw(&page)
	heads := []string{r.Rate, "share of the capacity", "objectives"}
	cells := func(i int) []string {
		t := r.trials[i]
		share := ""
		if t.share > 0 {
			share = strconv.FormatFloat(t.share, 'f', -1, 64)
		}
		return []string{strconv.FormatInt(t.rate, 10), share, strings.TrimSuffix(t.answer.String()+": "+t.why, ": ")}
	}
	page.Tables = []sweep.Table{sweep.CellsTable(r.Columns, r.rows, heads, func(i int) (all []sweep.Text) {
		for _, text := range cells(i) {
			all = append(all, sweep.Text{Text: text})
		}
		return all
	})}
	if err := page.Write(r.Folder); err != nil {
		return err
	}
	return sweep.WriteCSV(r.Folder, r.Columns, r.rows, heads, cells)
}

// draw adds a chart of each latency over the rate, of the probes that the generator did not spoil.
func (r *Run) draw(page *sweep.Page) {
	byRate := map[int64][]int{}
	for i, t := range r.trials {
		if t.answer != Generator {
			byRate[t.rate] = append(byRate[t.rate], i)
		}
	}
	var rates []int64
	for rate := range byRate {
		rates = append(rates, rate)
	}
	slices.Sort(rates)
	ticks := make([]string, len(rates))
	for i, rate := range rates {
		ticks[i] = strconv.FormatInt(rate, 10)
	}
	if len(rates) < 2 {
		return
	}
	for k, c := range r.Columns {
		chart, ok := sweep.Chart(fmt.Sprintf("curve%d", k+1), c, r.Rate, ticks, []string{c.Label()}, func(_, tick int) sweep.Number {
			var numbers []sweep.Number
			for _, i := range byRate[rates[tick]] {
				numbers = append(numbers, r.rows[i].Numbers[k])
			}
			return sweep.Median(numbers)
		})
		if ok && c.Unit == "ns" {
			page.Charts = append(page.Charts, chart)
		}
	}
}
