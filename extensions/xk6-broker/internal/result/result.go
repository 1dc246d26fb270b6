// Package result is the model of summary.json, and sets it from a recording.
package result

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Version is the version of the schema of [Result].
const Version = 3

// Result is the result of a run.
type Result struct {
	Version     int               `json:"version"`
	Name        string            `json:"name"`
	Run         uint32            `json:"run"`      // the same in all processes of one test
	Instance    uint32            `json:"instance"` // this process
	Started     time.Time         `json:"started"`
	Seconds     float64           `json:"seconds"`
	Unfinished  bool              `json:"unfinished,omitempty"` // the process was killed
	Processes   int               `json:"processes,omitempty"`  // of the test; 0 if the user did not set it
	Segment     *Segment          `json:"segment,omitempty"`    // that this process had of the test; nil of a whole test
	Clock       *Clock            `json:"clock,omitempty"`      // of this process, if it had a coordinator
	Missing     []string          `json:"missing,omitempty"`    // processes of the test that this one waited for in vain
	Clocks      []Clocks          `json:"clocks,omitempty"`     // of the processes, of a result of several
	Test        Test              `json:"test"`
	Thresholds  []Threshold       `json:"thresholds"`
	Checks      []Check           `json:"checks"`
	Marks       []Annotation      `json:"marks"`
	Phases      []Phase           `json:"phases,omitempty"`  // in the order in which they began; none if the run is one
	Leading     string            `json:"leading,omitempty"` // the phase that tables show first; "" for the whole run
	Environment map[string]string `json:"environment"`       // versions, machine
	Topics      []Topic           `json:"topics"`
	Dropped     uint64            `json:"dropped"`  // iterations that k6 dropped
	Unserved    uint64            `json:"unserved"` // arrivals of open-arrival-rate that never had an iteration
	CPU         float64           `json:"cpu"`      // the share of its CPUs that the process used, 0 to 1
	Platform    *Platform         `json:"platform,omitempty"`
	Verdict     Verdict           `json:"verdict"`

	Recording *recording.Recording `json:"-"` // nil of a result that was read
	Siblings  int                  `json:"-"` // other processes that messages came from
}

// Topic is the measurement of one topic of one broker.
type Topic struct {
	Broker      string                     `json:"broker"` // address, without credentials
	Driver      string                     `json:"driver"`
	Topic       string                     `json:"topic"`
	Info        Server                     `json:"info"`
	Confirm     string                     `json:"confirm"`    // the weakest of the proofs
	Proofs      []Proof                    `json:"proofs"`     // of confirmations, by the producers' options
	OpenLoop    bool                       `json:"openLoop"`   // sent by a schedule; in a closed loop due is sent
	ClosedLoop  bool                       `json:"closedLoop"` // something was sent by no schedule
	Declared    bool                       `json:"declared"`   // the script has a consumer for it
	OnlySends   bool                       `json:"onlySends"`  // the driver has no consumers
	Options     Uses                       `json:"options"`    // in force for each that used it
	Counts      map[string]int64           `json:"counts"`
	Errors      []ErrorCount               `json:"errors"`
	Trends      map[string]*hist.Histogram `json:"trends"`      // of a closed loop beside an open one: "_closed"
	Percentiles map[string][]Percentile    `json:"percentiles"` // of each trend, read from its histogram
	Groups      []Group                    `json:"groups"`      // empty: nothing consumed here, loss was not observed
	History     []Point                    `json:"history"`
	Spans       map[string]Span            `json:"spans,omitempty"`  // of the counters sent, confirmed and received
	OverTime    map[string][]Summary       `json:"overTime"`         // of each trend, in intervals for a p99 if possible
	Phases      map[string]Window          `json:"phases,omitempty"` // by name
	Apart       *Clocks                    `json:"apart,omitempty"`  // the clocks that measured its latencies

	Shared     bool `json:"-"` // other processes of the test may use it, and their part is not in here
	HeldUnseen bool `json:"-"` // the broker does not report messages that outside clients hold unsettled

	Hiccups *hist.Histogram `json:"-"` // of the platform, while the topic was in use
	During  *Phase          `json:"-"` // that it was cut to; nil for the whole run
	Run     *Topic          `json:"-"` // the topic that it was cut from; nil for the whole run
}

// Group is the measurement and the account of one group of consumers.
type Group struct {
	account.Account
	Members     int                        `json:"members"` // the most consumers in it at a time, subscribers together
	Trends      map[string]*hist.Histogram `json:"trends"`  // of the consumers' side
	Percentiles map[string][]Percentile    `json:"percentiles"`

	Strangers int64 `json:"-"` // received that no producer of the topic sent
}

// Server is a broker and the client that it is reached by.
type Server struct {
	Server   string `json:"server"`   // product and version
	Client   string `json:"client"`   // library and version
	Nodes    int    `json:"nodes"`    // servers that the client found; 0 if unknown
	Embedded bool   `json:"embedded"` // the server runs inside the process
}

// Several reports whether the result is joined from the results of several processes.
func (r *Result) Several() bool { return r.Environment["processes"] != "" }

// Used reports whether anything was done with the topic, beyond its creation.
func (t *Topic) Used() bool {
	sent := t.OpenLoop || t.ClosedLoop || len(t.Options["producer"]) > 0
	return sent || len(t.Counts) > 0 || len(t.Errors) > 0 || len(t.Groups) > 0
}

// Copies reports whether the account has the group's duplicates. It has none of other topics'
// messages, and none of messages that were read back.
func (g *Group) Copies() bool {
	return g.Group != account.ReadBack && (g.Received+g.Drained > 0 || g.Strangers == 0)
}

// Measure sets the measurements from a recording alone: the phases, and of the topics and groups
// that the result has their counts, errors, latencies, spans and histories. Counters that a topic
// has stay, at 0 if nothing was counted.
func (r *Result) Measure(rec *recording.Recording) {
	view := rec.View(r.Started)
	r.Recording, r.Phases, r.Leading = rec, view.Phases(), ""
	if r.Phase(Measure) != nil {
		r.Leading = Measure
	}
	if r.Platform != nil {
		r.Platform.Hiccups = view.Hiccups()
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		m := view.Measure(t.subject())
		for name := range t.Counts {
			m.Counts[name] += 0
		}
		t.OpenLoop, t.Counts, t.Errors, t.Trends = m.Open, m.Counts, m.Errors, m.Trends
		t.Spans, t.History, t.OverTime, t.Phases = m.Spans, m.History, m.OverTime, m.Phases
		for k := range t.Groups {
			t.Groups[k].Trends = m.Groups[k].Trends
		}
	}
}

// subject returns the topic for a recording.
func (t *Topic) subject() recording.Subject {
	s := recording.Subject{Broker: t.Broker, Driver: t.Driver, Topic: t.Topic, Open: t.OpenLoop}
	for i := range t.Groups {
		s.Groups = append(s.Groups, t.Groups[i].Group)
	}
	return s
}

// Cut adds the phase from one time to another, in seconds from the start, and lets it lead, without
// percentiles. It is cut at the nearest instants at which an interval of the recording begins or
// ends.
func (r *Result) Cut(rec *recording.Recording, from, to float64) error {
	p, window, err := rec.Cut(r.Started, from, to)
	if err != nil {
		return err
	}
	if r.Phase(p.Name) != nil {
		return fmt.Errorf("the run has a phase %q", p.Name)
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		if t.Phases == nil {
			t.Phases = map[string]Window{}
		}
		t.Phases[p.Name] = window(t.subject())
	}
	r.Phases, r.Leading = append(r.Phases, p), p.Name
	return nil
}

// WriteLog writes the distributions of a topic's trend in each interval in the format .hlog.
func (r *Result) WriteLog(w io.Writer, t *Topic, trend recording.Trend) error {
	return r.Recording.View(r.Started).WriteLog(w, t.subject(), trend)
}

// The names of phases with a meaning.
const (
	Starting = recording.Starting
	WarmUp   = recording.WarmUp
	Measure  = recording.Measured
)

type (
	// Phase is a part of the run's time.
	Phase = recording.Phase
	// Stretch is a time of a phase.
	Stretch = recording.Stretch
	// Window is the measurement of a topic in a phase.
	Window = recording.Window
	// WindowGroup is the measurement of a group in a phase.
	WindowGroup = recording.WindowGroup
	// Percentile is one point of a distribution.
	Percentile = recording.Percentile
	// Point is one interval of a topic's history.
	Point = recording.Point
	// Summary is the distribution of an interval.
	Summary = recording.Summary
	// Span is from when to when something was counted.
	Span = recording.Extent
	// ErrorCount counts errors of one sort.
	ErrorCount = recording.ErrorCount
)

// Phase returns a phase; nil if the run has none of that name.
func (r *Result) Phase(name string) *Phase {
	i := slices.Index(r.PhaseNames(), name)
	if i < 0 {
		return nil
	}
	return &r.Phases[i]
}

// PhaseNames lists the phases in the order in which they began.
func (r *Result) PhaseNames() []string {
	names := make([]string, len(r.Phases))
	for i, p := range r.Phases {
		names[i] = p.Name
	}
	return names
}

// Led returns the run as it was in the leading phase, or as a whole.
func (r *Result) Led() *Result {
	if r.Leading == "" {
		return r
	}
	return r.During(r.Leading)
}

// During returns the run in a phase, with its whole account; nil if there is no such phase.
func (r *Result) During(name string) *Result {
	p := r.Phase(name)
	if p == nil {
		return nil
	}
	during := *r
	during.Seconds, during.Phases, during.Leading = p.Seconds, nil, ""
	if r.Platform != nil {
		platform := *r.Platform
		platform.Hiccups = p.Hiccups
		during.Platform = &platform
	}
	during.Topics = make([]Topic, len(r.Topics))
	for i := range r.Topics {
		during.Topics[i] = r.Topics[i].In(p)
	}
	return &during
}

// In returns the topic as it was in a phase.
func (t *Topic) In(p *Phase) Topic {
	w, during := t.Phases[p.Name], *t
	during.During, during.Run, during.Phases, during.Hiccups = p, t, nil, p.Hiccups
	during.Counts, during.Errors, during.Trends, during.Percentiles = w.Counts, w.Errors, w.Trends, w.Percentiles
	during.History, during.OverTime = recording.Within(t.History, p), map[string][]Summary{}
	for name, all := range t.OverTime {
		during.OverTime[name] = recording.Within(all, p)
	}
	during.Groups = slices.Clone(t.Groups)
	for i := range during.Groups {
		g := &during.Groups[i]
		own := WindowGroup{}
		if k := slices.IndexFunc(w.Groups, func(w WindowGroup) bool { return w.Group == g.Group }); k >= 0 {
			own = w.Groups[k]
		}
		g.Received, g.Settled, g.Trends, g.Percentiles = own.Received, own.Settled, own.Trends, own.Percentiles
	}
	return during
}

// RateBasis returns a count and its duration in seconds; 0 if that is too short for a rate.
func (t *Topic) RateBasis(counter string) (n, seconds float64) {
	return float64(t.Counts[counter]), recording.RateTime(counter, t.Spans, t.During)
}

// Loop splits the name of a trend: its metric, and "open", "closed" or "".
func (t *Topic) Loop(name string) (trend, loop string) {
	trend, closed := strings.CutSuffix(name, recording.ClosedSuffix)
	named, ok := recording.TrendNamed(trend)
	switch {
	case !ok || !named.Looped():
		return trend, ""
	case closed || !t.OpenLoop:
		return trend, recording.Closed.String()
	}
	return trend, recording.Open.String()
}

// Verdict reports whether the numbers of a run are reliable, and why not.
type Verdict struct {
	Valid     bool            `json:"valid"`
	Of        string          `json:"of,omitempty"`     // the phase whose latencies it judges; "" for the whole run
	UpTo      float64         `json:"upTo,omitempty"`   // the quantile to which all latencies are reliable; 0: all are
	Except    string          `json:"except,omitempty"` // a latency that is not reliable because of two clocks
	Latencies bool            `json:"latencies"`        // no invalid reason speaks against its latencies
	Account   bool            `json:"account"`          // no invalid reason speaks against its account
	Reasons   []reason.Reason `json:"reasons"`
	Beliefs   []Belief        `json:"beliefs"` // how far each latency is reliable
}

// Belief is how far a latency is reliable. If more than samples limits it, a reason
// [reason.PercentileNotReliable] of the topic names the limit.
type Belief struct {
	Topic string  `json:"topic"`
	Label string  `json:"label"` // the latency, as a reader calls it
	UpTo  float64 `json:"upTo"`  // the greatest reliable quantile that a result spells out; 0: not even the median
}

// Invalid returns the reasons why the result is not valid.
func (v *Verdict) Invalid() []reason.Reason { return v.at(reason.Invalid) }

// Notes returns the reasons that do not make the result invalid.
func (v *Verdict) Notes() []reason.Reason { return v.at(reason.Note) }

func (v *Verdict) at(level reason.Level) (all []reason.Reason) {
	for _, r := range v.Reasons {
		if r.Level == level {
			all = append(all, r)
		}
	}
	return all
}

// Add adds a reason.
func (v *Verdict) Add(r reason.Reason) {
	v.Reasons = append(v.Reasons, r)
	if r.Level != reason.Invalid {
		return
	}
	latencies, account := r.Code.Against()
	v.Valid, v.Latencies, v.Account = false, v.Latencies && !latencies, v.Account && !account
}

// Threshold is a condition that the test sets on a metric, and its outcome.
type Threshold struct {
	Metric string `json:"metric"` // with its tags, as in the test
	Source string `json:"source"` // the condition
	Decision
}

// Decision is the outcome of a condition. One that was not judged has not held.
type Decision struct {
	Held   bool     `json:"held"`
	Judged bool     `json:"judged"`
	Value  *float64 `json:"value"` // the compared value: ms of a latency, else the number itself; nil if there is none
	Why    string   `json:"why"`   // why it was not judged
}
