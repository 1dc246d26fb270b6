package capacity

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// Run searches for the capacity, and then measures latencies at shares of the capacity.
type Run struct {
	cells.Study
	Script            string
	Objectives        []string
	Search            Search
	Width, Confidence string        // of the search, such as 5%
	Rate              string        // the setting that is the rate
	Length            string        // the setting that is how long messages are sent
	WarmUp            time.Duration // of each probe
	Window            time.Duration // of each probe, after its warm-up
	Columns           []string

	objectives []measure.Objective
	columns    []*cells.Column
	probes     []probe
	outcome    Outcome
	ended      bool    // the search
	perUnit    float64 // messages due per second, for each of the rate
}

// probe is a run at one rate.
type probe struct {
	cells.Outcome
	rate   int64
	share  string // of the capacity, on the rate-latency curve; "" in the search
	answer Answer
	reason string
}

// shares are the points of the rate-latency curve.
var shares = []float64{0.1, 0.5, 0.7, 0.9, 0.95}

// Do searches, and measures the curve. Page and tables are written after each probe.
func (r *Run) Do(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	facts, err := cells.Script(ctx, r.Script, []string{r.Rate, r.Length})
	if err != nil {
		return err
	}
	facts["objectives"] = strings.Join(r.Objectives, " and ")
	search := r.Search
	search.Probes = 0 // a study resumes with more of them
	facts["search"] = fmt.Sprintf("%+v", search)
	facts["first probe"] = r.settings(r.Search.From).String()
	if err := r.Open(cells.Base(r.Script)+"-capacity", facts); err != nil {
		return err
	}
	return r.search(ctx)
}

func (r *Run) check() (err error) {
	if r.objectives, err = parseObjectives(r.Objectives); err != nil {
		return err
	}
	if r.Search.Width, err = percent("--width", r.Width); err != nil {
		return err
	}
	if r.Search.Confidence, err = percent("--confidence", r.Confidence); err != nil {
		return err
	}
	if err := r.Search.Check(); err != nil {
		return err
	}
	for _, o := range r.objectives {
		r.columns = append(r.columns, &cells.Column{Title: o.Measure.Label(), Measure: o.Measure})
	}
	others, err := cells.Parse(r.Columns)
	r.columns = append(r.columns, others...)
	return err
}

func percent(flag, text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q: write a percentage, such as 5%%", flag, text)
	}
	return v / 100, nil
}

func (r *Run) search(ctx context.Context) (err error) {
	r.outcome, err = r.Search.Run(ctx, func(ctx context.Context, rate int64) (Answer, error) {
		return r.probe(ctx, rate, "")
	})
	if err != nil {
		return err
	}
	r.ended = true
	r.Say("\n%s", r.Answer())
	if r.outcome.Finding == Found || r.outcome.Finding == NotReached {
		for _, share := range shares {
			rate := max(1, int64(math.Round(share*float64(r.outcome.Low))))
			if _, err := r.probe(ctx, rate, fmt.Sprint(share)); err != nil {
				return err
			}
		}
	}
	return r.write()
}

// probe runs the script at one rate, and judges the result.
func (r *Run) probe(ctx context.Context, rate int64, share string) (Answer, error) {
	cell := cells.Cell{
		Folder: report.Sanitise(fmt.Sprintf("%03d-%s-%d", len(r.probes)+1, r.Rate, rate)),
		Label:  fmt.Sprintf("[%d] %s=%d", len(r.probes)+1, r.Rate, rate),
		Script: r.Script, Settings: r.settings(rate), Columns: r.columns,
	}
	o, err := r.Cell(ctx, cell)
	if err != nil {
		return 0, err
	}
	if o.Result == nil {
		return 0, fmt.Errorf("%s=%d has no result: %s: --resume tries again", r.Rate, rate, o.Error)
	}
	p := probe{Outcome: o, rate: rate, share: share}
	p.answer, p.reason, err = Judge(o.Result, r.objectives)
	if err != nil && share == "" {
		return 0, fmt.Errorf("%s=%d: %w", r.Rate, rate, err)
	}
	if err != nil {
		p.reason = err.Error() // the curve shows its numbers
	}
	if err := r.follows(p); err != nil {
		return 0, err
	}
	r.probes = append(r.probes, p)
	r.Say("  %s", strings.TrimSpace(p.answer.String()+" "+p.reason))
	return p.answer, r.write()
}

func (r *Run) settings(rate int64) cells.Settings {
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
	return cells.Settings{
		r.Rate: strconv.FormatInt(rate, 10), r.Length: seconds(r.WarmUp + r.Window), "BROKER_WARMUP": seconds(r.WarmUp),
	}
}

// follows returns an error if the messages due do not follow the rate, by the probes that met the
// objectives.
func (r *Run) follows(p probe) error {
	due, err := measure.Rate("due").OfRun(p.Result)
	if err != nil || p.answer != Met {
		return nil //nolint:nilerr // nothing can be checked
	}
	if r.perUnit == 0 {
		r.perUnit = due / float64(p.rate)
	}
	if expected := r.perUnit * float64(p.rate); due < 0.8*expected || due > 1.25*expected {
		return fmt.Errorf("%s=%d produced %.4g msg/s, expected %.4g: does the script use %s?",
			r.Rate, p.rate, due, expected, r.Rate)
	}
	return nil
}

// Answer returns the finding in words, with the last reason of a probe.
func (r *Run) Answer() string {
	o := r.outcome
	text := fmt.Sprintf("%v between %s=%d and ", o.Finding, r.Rate, o.Low)
	if o.High == 0 {
		text += "more"
	} else {
		text += strconv.FormatInt(o.High, 10)
	}
	if o.Finding != Undecided && o.Finding != NoSteadyState {
		text += fmt.Sprintf(", with a confidence of %g %%", 100*r.Search.Confidence)
	}
	for _, p := range slices.Backward(r.probes) {
		if p.reason != "" {
			return text + ". Last reason: " + p.reason
		}
	}
	return text
}

func (r *Run) write() error {
	page := cells.Page{
		Title: filepath.Base(r.Folder), Asked: r.Asked, Verdict: "The search continues",
		Intro: []cells.Text{{Text: fmt.Sprintf("The greatest %s with %s", r.Rate, r.Asked["objectives"])}},
	}
	if r.ended {
		page.Verdict = r.Answer()
		page.Valid = r.outcome.Finding == Found || r.outcome.Finding == NotReached
	}
	var runs, drawn []cells.Outcome
	texts := map[string][]string{}
	for _, p := range r.probes {
		texts[p.Folder] = []string{strconv.FormatInt(p.rate, 10), p.share, p.answer.String(), p.reason}
		runs = append(runs, p.Outcome)
		if p.answer != Generator {
			drawn = append(drawn, p.Outcome)
		}
	}
	for _, c := range r.columns {
		place := func(o cells.Outcome) (tick, line string) { return texts[o.Folder][0], c.Title }
		if chart := c.Chart(r.Rate, drawn, place); len(chart.Lines) > 0 && c.Unit == "ns" {
			page.Charts = append(page.Charts, chart)
		}
	}
	heads := []string{r.Rate, "share of the capacity", "objectives", "reason"}
	page.Tables = []cells.Table{
		cells.Runs(runs, r.columns, heads, func(o cells.Outcome) []string { return texts[o.Folder] }),
	}
	return page.Write(r.Folder)
}
