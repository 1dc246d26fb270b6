package sweep

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/capacity"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// Capacity searches for the greatest rate at which a script meets its objectives, and then has it run at shares of that rate.
type Capacity struct {
	Search     capacity.Search
	Objectives []measure.Objective
	Rate       string        // the setting that is the rate
	Length     string        // the setting that is how long messages are sent
	WarmUp     time.Duration // of each probe
	Window     time.Duration // of each probe, after its warm-up
	Columns    []measure.Measure
	Folder     string
	Journal    *Journal
	Run        func(context.Context, Cell) (Outcome, error) // [Runner.Run]
	Out        io.Writer

	trials  []Trial
	outcome capacity.Outcome
	cells   int
	perUnit float64 // how many messages a second were due, of each that was asked for
}

// Trial is a probe with what was measured in it.
type Trial struct {
	Row
	Rate   int64
	Share  float64 // of the capacity, of the rate-latency curve; 0 of the search
	Answer capacity.Answer
	Why    string // the answer is not Met
}

// Shares are those of the capacity at which the rate-latency curve is measured.
var shares = []float64{0.1, 0.5, 0.7, 0.9, 0.95}

// attempts is how many probes in a row may have no result.
const attempts = 3

// Do searches until the answer is known, and then measures the curve. When stop is closed, it ends after the running probe, and when ctx ends, with it.
func (s *Capacity) Do(ctx context.Context, stop <-chan struct{}) error {
	s.say("%s from %d on, %d probes at most, of %v each after a warm-up of %v", s.Rate, s.Search.From, s.Search.Probes, s.Window, s.WarmUp)
	var err error
	s.outcome, err = s.Search.Run(ctx, func(ctx context.Context, rate int64) (capacity.Answer, error) {
		return s.probe(ctx, stop, rate, 0)
	})
	if err != nil {
		return err
	}
	if err := s.curve(ctx, stop); err != nil {
		return err
	}
	s.say("\n%s", s.Answer())
	return s.write()
}

// curve measures latency at shares of the capacity. Its probes are evidence too: what the system can no longer do is said.
func (s *Capacity) curve(ctx context.Context, stop <-chan struct{}) error {
	of := s.outcome.Low
	if s.outcome.Finding != capacity.Found && s.outcome.Finding != capacity.NotReached {
		return nil
	}
	s.say("\n%s\nThe rate-latency curve:", s.Answer())
	probes := slices.Clone(s.outcome.Probes)
	for _, share := range shares {
		p := s.Search.At(probes, max(1, int64(math.Round(share*float64(of)))))
		var err error
		if p.Answer, err = s.probe(ctx, stop, p.Rate, share); err != nil {
			return err
		}
		if p.Answer != capacity.Generator && p.Answer != capacity.Unjudged {
			probes = append(probes, p)
		}
	}
	if o := s.Search.Judge(probes); o.Finding == capacity.NoSteadyState {
		s.outcome = o
	}
	return nil
}

// probe runs the script at one rate until there is a result, and judges that.
func (s *Capacity) probe(ctx context.Context, stop <-chan struct{}, rate int64, share float64) (capacity.Answer, error) {
	s.cells++
	cell := Cell{Index: s.cells, Repetition: 1, Folder: fmt.Sprintf("%03d-%s-%d", s.cells, report.Sanitise(s.Rate), rate), Settings: s.settings(rate)}
	o, done := s.Journal.Outcome(cell)
	if was, _ := s.Journal.Record(cell.Index); done && !slices.Equal(was.Settings, cell.Settings) {
		return 0, fmt.Errorf("the journal has another probe in the place of %s: begin anew with another --out", cell.Settings)
	}
	for attempt := 1; !done; attempt++ {
		select {
		case <-stop:
			return 0, ErrStopped
		default:
		}
		var err error
		if o, err = s.Run(ctx, cell); err == nil {
			err = s.Journal.Add(o)
		}
		switch {
		case err != nil:
			return 0, err
		case o.Cut:
			return 0, ErrStopped
		case o.Result == nil && attempt == attempts:
			return 0, fmt.Errorf("%d probes at %s=%d in a row have no result: %s", attempts, s.Rate, rate, o.Error)
		case o.Result == nil:
			s.say("[%d] %s=%d FAILED, and is run again: %s", cell.Index, s.Rate, rate, o.Error)
		}
		done = o.Result != nil
	}
	t := Trial{Row: NewRow(o, s.Columns), Rate: rate, Share: share}
	var err error
	if t.Answer, t.Why, err = capacity.Judge(o.Result, s.Objectives); err != nil {
		return 0, err
	}
	if t.Answer == capacity.Unjudged && share == 0 {
		return 0, fmt.Errorf("%s=%d: %s: probe for longer (--probe), from a greater rate (--from), or ask for what the script measures", s.Rate, rate, t.Why)
	}
	if err := s.follows(t, o); err != nil {
		return 0, err
	}
	s.trials = append(s.trials, t)
	s.tell(t)
	return t.Answer, s.write()
}

// settings are those of a probe.
func (s *Capacity) settings(rate int64) Values {
	return Values{
		{Name: s.Rate, Value: strconv.FormatInt(rate, 10)}, {Name: s.Length, Value: seconds(s.WarmUp + s.Window)}, {Name: "BROKER_WARMUP", Value: seconds(s.WarmUp)},
	}
}

// Plan is the first probe, as a study of one cell: what is wrong with its settings is wrong with all.
func (s *Capacity) Plan() Plan {
	p := Plan{Repeat: 1}
	for _, v := range s.settings(s.Search.From) {
		p.Settings = append(p.Settings, Setting{v.Name, []string{v.Value}})
	}
	return p
}

// follows checks that the script did what the setting says: that about as many messages were due, of each that was asked for, as in the first probe that met
// its objectives. Of one that did not meet them nothing is checked.
func (s *Capacity) follows(t Trial, o Outcome) error {
	due, err := measure.Rate("due").OfRun(o.Result)
	if known := err == nil && t.Answer == capacity.Met; !known { // what is due while a client lets nobody send is counted late
		return nil
	}
	unit := due / float64(t.Rate)
	if s.perUnit == 0 {
		s.perUnit = unit
	}
	if ratio := unit / s.perUnit; ratio < 0.8 || ratio > 1.25 {
		return fmt.Errorf("with %s=%d %.4g messages were due a second, and not the %.4g that there would be as in the first probe: the script does not go by %s",
			s.Rate, t.Rate, due, s.perUnit*float64(t.Rate), s.Rate)
	}
	return nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }

func (s *Capacity) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...) // a terminal that is gone is no reason to end
}

// tell prints a probe in one line.
func (s *Capacity) tell(t Trial) {
	text := fmt.Sprintf("[%d] %s=%d: %s", t.Cell.Index, s.Rate, t.Rate, t.Answer)
	if t.Why != "" {
		text += " (" + t.Why + ")"
	}
	if t.Others != "" {
		text += ", " + t.Others
	}
	for i, c := range s.Columns {
		if n := t.Numbers[i]; n.Known {
			text += fmt.Sprintf(", %s %s%s", c.Label(), c.Show(n.Value), n.sign())
		}
	}
	s.say("%s", text)
}

// Answer is what the search found, in words.
func (s *Capacity) Answer() string {
	shared, of := 0, ""
	for _, t := range s.trials {
		if t.Others != "" {
			shared, of = shared+1, t.Others
		}
	}
	if shared == 0 {
		return s.found()
	}
	return fmt.Sprintf("%s It was not the only load: in %s, messages of other tests came in; in the last of them %s.", s.found(), plural(shared, "probe"), of)
}

func (s *Capacity) found() string {
	o := s.outcome
	probes := 0
	for _, t := range s.trials {
		if t.Share == 0 {
			probes++
		}
	}
	sure := fmt.Sprintf("with a confidence of %g %%, after %d probes", 100*s.Search.Confidence, probes)
	between := fmt.Sprintf("between %s=%d and %d (%.2g %%)", s.Rate, o.Low, o.High, 100*(float64(o.High)/float64(max(1, o.Low))-1))
	switch o.Finding {
	case capacity.Found:
		return fmt.Sprintf("The capacity is %s, %s.", between, sure)
	case capacity.TooLittle:
		return fmt.Sprintf("Not even %s=%d meets the objectives, %s: %s.", s.Rate, s.Search.From, sure, s.last())
	case capacity.NotReached:
		return fmt.Sprintf("The highest rate that is allowed, %s=%d, still meets the objectives, %s: the capacity is more.", s.Rate, s.Search.To, sure)
	case capacity.GeneratorFirst:
		if o.Low == 0 {
			return fmt.Sprintf("The generator ended first, at less than %s=%d: nothing is known of the system's capacity: %s.", s.Rate, o.High, s.last())
		}
		return fmt.Sprintf("The generator ended first, %s: the system's capacity is more than %d, and how much more is not known: %s.", between, o.Low, s.last())
	case capacity.NoSteadyState:
		return fmt.Sprintf("There is no steady state: the system changed while its capacity was searched for, after %d probes%s.", probes, after(s.lastOf(capacity.Unsteady)))
	}
	low, high := "nothing is known of its lower end", "nothing of its upper end"
	if o.Low > 0 {
		low = fmt.Sprintf("it is at least %s=%d", s.Rate, o.Low)
	}
	if o.High > 0 {
		high = fmt.Sprintf("at most %d", o.High)
	}
	if spoilt := s.lastOf(capacity.Generator); spoilt != "" {
		sure += "; of what the generator spoilt nothing is known: " + spoilt
	}
	return fmt.Sprintf("The probes ended before the capacity was known as closely as was asked for: %s, %s, %s. Longer probes differ less from one another (--probe), and more of them "+
		"know more (--probes).", low, high, sure)
}

func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// last is why the last probe that was not met was not.
func (s *Capacity) last() string {
	for _, t := range slices.Backward(s.trials) {
		if t.Why != "" {
			return t.Why
		}
	}
	return ""
}

func (s *Capacity) lastOf(a capacity.Answer) string {
	for _, t := range slices.Backward(s.trials) {
		if t.Answer == a {
			return t.Why
		}
	}
	return ""
}

// Asked is what was asked for.
func (s *Capacity) Asked() []Fact {
	facts := []Fact{
		{"--rate-setting", s.Rate},
		{"--length-setting", s.Length},
		{"--from", strconv.FormatInt(s.Search.From, 10)},
		{"--to", strconv.FormatInt(s.Search.To, 10)},
		{"--width", fmt.Sprintf("%g%%", 100*s.Search.Width)},
		{"--confidence", fmt.Sprintf("%g%%", 100*s.Search.Confidence)},
		{"--probe", s.Window.String()},
		{"--warmup", s.WarmUp.String()},
		{"--probes", strconv.Itoa(s.Search.Probes)},
	}
	for i, o := range s.Objectives {
		facts = append(facts, Fact{fmt.Sprintf("--objective %d", i+1), o.Text})
	}
	return facts
}

func (s *Capacity) write() error {
	if err := report.WriteAtomic(filepath.Join(s.Folder, PageFile), s.writeHTML); err != nil {
		return err
	}
	return report.WriteAtomic(filepath.Join(s.Folder, TableFile), s.writeCSV)
}
