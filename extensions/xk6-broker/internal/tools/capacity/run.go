package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// Run searches for the capacity, and then measures the latency at shares of it.
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
	columns    []cells.Column
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
	if err := r.Prepare(cells.Base(r.Script) + "-capacity"); err != nil {
		return err
	}
	script, err := cells.Inspect(ctx, r.Runner.K6, r.Script)
	if err != nil {
		return err
	}
	settings := r.settings(r.Search.From)
	set := map[string]bool{}
	for _, v := range settings {
		set[v.Name] = true
		if !script.Reads(v.Name) {
			return fmt.Errorf("%s: the script never reads it", v.Name)
		}
	}
	facts := script.Environment(set)
	facts["script"] = script.Hash
	facts["objectives"] = strings.Join(r.Objectives, " and ")
	facts["search"] = fmt.Sprintf("%+v", r.Search)
	facts["settings"] = settings.String()
	if err := r.Open(facts); err != nil {
		return err
	}
	defer r.Journal.Close() //nolint:errcheck // the process ends
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
	if r.Rate == r.Length || r.WarmUp < time.Second || r.Window < time.Second {
		return errors.New("--rate-setting and --length-setting must be two settings, --probe and --warmup at least 1s")
	}
	var columns []cells.Column
	for _, o := range r.objectives {
		columns = append(columns, cells.Column{Measure: o.Measure})
	}
	r.columns, err = cells.Columns(r.Columns, columns...)
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
		Script: r.Script, Settings: r.settings(rate), Columns: r.columns,
	}
	o, done := r.Journal.Outcome(cell)
	if !done {
		var err error
		if o, err = r.Cell(ctx, cell); err != nil {
			return 0, err
		}
	}
	if o.Result == nil {
		return 0, fmt.Errorf("%s=%d has no result: %s: --resume tries again", r.Rate, rate, o.Error)
	}
	p := probe{Outcome: o, rate: rate, share: share}
	var err error
	if p.answer, p.reason, err = Judge(o.Result, r.objectives); err != nil && share == "" {
		return 0, fmt.Errorf("%s=%d: %w", r.Rate, rate, err)
	}
	if err := r.follows(p); err != nil {
		return 0, err
	}
	r.probes = append(r.probes, p)
	r.Say("[%d] %s=%d: %s %s, %s", len(r.probes), r.Rate, rate, p.answer, p.reason, o.Summary())
	return p.answer, r.write()
}

func (r *Run) settings(rate int64) cells.Values {
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
	return cells.Values{
		{Name: r.Rate, Value: strconv.FormatInt(rate, 10)},
		{Name: r.Length, Value: seconds(r.WarmUp + r.Window)},
		{Name: "BROKER_WARMUP", Value: seconds(r.WarmUp)},
	}
}

// follows returns an error if the messages due do not follow the rate, by the probes that met the objectives.
func (r *Run) follows(p probe) error {
	due, err := measure.Rate("due").OfRun(p.Result)
	if err != nil || p.answer != Met {
		return nil //nolint:nilerr // nothing can be checked
	}
	if r.perUnit == 0 {
		r.perUnit = due / float64(p.rate)
	}
	if expected := r.perUnit * float64(p.rate); due < 0.8*expected || due > 1.25*expected {
		return fmt.Errorf("%s=%d produced %.4g msg/s, expected %.4g: does the script use %s?", r.Rate, p.rate, due, expected, r.Rate)
	}
	return nil
}

// Answer returns the finding in words, with the last reason of a probe.
func (r *Run) Answer() string {
	o := r.outcome
	between := fmt.Sprintf("between %s=%d and %d", r.Rate, o.Low, o.High)
	sure := fmt.Sprintf("with a confidence of %g %%", 100*r.Search.Confidence)
	reason := ""
	for _, p := range r.probes {
		reason = cmp.Or(p.reason, reason)
	}
	switch o.Finding {
	case Found:
		wide := 100 * (float64(o.High)/float64(o.Low) - 1)
		return fmt.Sprintf("The capacity is %s (%.2g %%), %s.", between, wide, sure)
	case TooLittle:
		return fmt.Sprintf("The lowest rate, %s=%d, does not meet the objectives, %s: %s.", r.Rate, o.High, sure, reason)
	case NotReached:
		return fmt.Sprintf("The highest allowed rate, %s=%d, meets the objectives, %s.", r.Rate, o.Low, sure)
	case GeneratorFirst:
		return fmt.Sprintf("The generator ended first, %s: the system's capacity is not known: %s.", between, reason)
	case NoSteadyState:
		return fmt.Sprintf("There is no steady state: probes near %s=%d contradict one another: %s.", r.Rate, o.Low, reason)
	default:
		return fmt.Sprintf("The probes ended before the capacity was known: so far %s=%d was met. Allow more --probes.", r.Rate, o.Low)
	}
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
		chart, ok := c.Chart(r.Rate, drawn, func(o cells.Outcome) (string, string) { return texts[o.Folder][0], c.Label() })
		if ok && c.Unit == "ns" {
			page.Charts = append(page.Charts, chart)
		}
	}
	heads := []string{r.Rate, "share of the capacity", "objectives", "reason"}
	page.Tables = []cells.Table{
		cells.Runs(runs, r.columns, heads, func(o cells.Outcome) []string { return texts[o.Folder] }),
	}
	return page.Write(r.Folder)
}
