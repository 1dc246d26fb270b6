// Package result is what a run found out, and whether that can be believed: the model that text, page, JSON, comparison and merging read, its
// verdict, and thresholds on it. Nothing of the engine is in it.
package result

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Version is the version of the schema of [Result].
const Version = 3

// Result is everything that a run found out.
type Result struct {
	Version     int               `json:"version"`
	Name        string            `json:"name"`
	Run         uint32            `json:"run"`      // the same in all processes of one test
	Instance    uint32            `json:"instance"` // this process
	Started     time.Time         `json:"started"`
	Seconds     float64           `json:"seconds"`
	Unfinished  bool              `json:"unfinished,omitempty"` // the process was killed: what it measured is in its recording
	Processes   int               `json:"processes,omitempty"`  // of the test, as somebody said; 0 where nobody did
	Segment     *Segment          `json:"segment,omitempty"`    // that this process had of the test; nil where that was not divided, or is put together
	Clock       *Clock            `json:"clock,omitempty"`      // of this process, where it had a coordinator
	Missing     []string          `json:"missing,omitempty"`    // processes of the test that this one waited for in vain
	Clocks      []Clocks          `json:"clocks,omitempty"`     // of the processes, of a result of several
	Test        Test              `json:"test"`
	Thresholds  []Threshold       `json:"thresholds"`
	Checks      []Check           `json:"checks"`
	Marks       []Annotation      `json:"marks"`
	Phases      []Phase           `json:"phases,omitempty"`  // in the order in which they began; none where the run is one
	Leading     string            `json:"leading,omitempty"` // the phase that tables show first; "" for the whole run
	Environment map[string]string `json:"environment"`       // versions, machine
	Topics      []Topic           `json:"topics"`
	Dropped     uint64            `json:"dropped"`  // iterations that k6 dropped: arrivals for which no VU was free, and what maxDuration left of a given number
	Unserved    uint64            `json:"unserved"` // arrivals of open-arrival-rate that never had an iteration
	CPU         float64           `json:"cpu"`      // the share of its CPUs that the process used, 0 to 1
	Platform    *Platform         `json:"platform,omitempty"`
	Verdict     Verdict           `json:"verdict"`

	Recording *recording.Recording `json:"-"` // what [Result.Measure] filled in is from; nil of a result that was read

	Siblings int `json:"-"` // other processes that messages came from
}

// Topic is what was measured on one topic of one broker.
type Topic struct {
	Broker      string                     `json:"broker"` // address, without credentials
	Driver      string                     `json:"driver"`
	Topic       string                     `json:"topic"`
	Info        Server                     `json:"info"`
	Confirm     string                     `json:"confirm"`    // the least that a confirmation proved; "" where nobody sent
	Proofs      []Proof                    `json:"proofs"`     // what confirmations proved, by the producers' options
	OpenLoop    bool                       `json:"openLoop"`   // sent by a schedule; in a closed loop due is sent
	ClosedLoop  bool                       `json:"closedLoop"` // something was sent by no schedule
	Declared    bool                       `json:"declared"`   // the script has a consumer for it
	OnlySends   bool                       `json:"onlySends"`  // the driver has no consumers: what becomes of messages is not observed, but for what is [ReadBack]
	Options     Uses                       `json:"options"`    // in force for each that used it
	Counts      map[string]int64           `json:"counts"`
	Errors      []ErrorCount               `json:"errors"`
	Trends      map[string]*hist.Histogram `json:"trends"`      // of a topic with both loops, those of the closed one with the suffix "_closed"
	Percentiles map[string][]Percentile    `json:"percentiles"` // of each trend, read from its histogram
	Groups      []Group                    `json:"groups"`      // empty: nobody consumed here, loss was not observed
	History     []Point                    `json:"history"`
	Spans       map[string]Span            `json:"spans,omitempty"`  // from when to when something was sent, confirmed and received
	OverTime    map[string][]Summary       `json:"overTime"`         // of each trend, in intervals long enough for a p99 where there are any
	Phases      map[string]Window          `json:"phases,omitempty"` // by name
	Apart       *Clocks                    `json:"apart,omitempty"`  // the clocks, of those by which its latencies to the consumers were measured, that may be furthest apart

	Namesake   bool     `json:"-"` // another broker of the result has a topic of this name
	Drops      []string `json:"-"` // options, with their values, by which the broker drops messages
	HeldUnseen bool     `json:"-"` // what clients outside of the process hold unsettled the broker does not tell

	Shared bool            `json:"-"` // other processes of the test may use it, and what they know is not in here
	Alone  bool            `json:"-"` // there is no other process
	Routed bool            `json:"-"` // some of its messages went where their keys said
	After  int64           `json:"-"` // messages that were confirmed when the consumers, for which the broker keeps nothing, had been told that there was no more
	Seen   *hist.Histogram `json:"-"` // hiccups of the platform, while the topic was in use

	phase *Phase  // that it was cut to; nil for the whole run
	total *Result // whose topics it joins; nil for one topic

	runCounts map[string]int64 // of the whole run, if phase is set

	lacks map[string]uint64 // of several topics as one: how many messages each trend of the way to the consumers lacks

	Interrupted map[Goal]Interruption `json:"-"`
}

// Group is what was measured of one group of consumers, and what became of its messages.
type Group struct {
	account.Account
	Members     int                        `json:"members"` // how many consumers were in it at most at a time, subscribers together
	Trends      map[string]*hist.Histogram `json:"trends"`  // of the consumers' side
	Percentiles map[string][]Percentile    `json:"percentiles"`

	Kept      bool  `json:"-"` // what it has received and not settled comes again
	Strangers int64 `json:"-"` // received that no producer of the topic sent, as this process knows
}

// Server is what is known of the broker.
type Server struct {
	Server   string `json:"server"`   // product and version
	Client   string `json:"client"`   // library and version
	Nodes    int    `json:"nodes"`    // how many servers the client knows of; 0 when unknown
	Embedded bool   `json:"embedded"` // the server runs inside the process
}

// ErrorCount counts errors of one sort.
type ErrorCount struct {
	Op    string `json:"op"`
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
}

// Several reports whether the result is joined from those of several processes.
func (r *Result) Several() bool { return r.Environment["processes"] != "" }

// Used reports whether anything was done with the topic, beyond its creation.
func (t *Topic) Used() bool {
	return t.OpenLoop || t.ClosedLoop || len(t.Counts) > 0 || len(t.Errors) > 0 || len(t.Groups) > 0 || len(t.Options["producer"]) > 0
}

// AddErrors counts more of one sort. They are sorted.
func (t *Topic) AddErrors(more ErrorCount) { t.Errors = addErrors(t.Errors, more) }

func addErrors(all []ErrorCount, more ErrorCount) []ErrorCount {
	i, found := slices.BinarySearchFunc(all, more, compareErrors)
	if !found {
		all = slices.Insert(all, i, ErrorCount{Op: more.Op, Kind: more.Kind})
	}
	all[i].Count += more.Count
	return all
}

func compareErrors(a, b ErrorCount) int {
	return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Kind, b.Kind))
}

// Loop takes the name of one of the topic's trends apart: the name of its metric, and the loop that it is of, "open" or "closed"; "" where
// loops are not told apart.
func (t *Topic) Loop(name string) (trend, loop string) {
	trend, closed := strings.CutSuffix(name, recording.ClosedSuffix)
	of, known := recording.TrendNamed(trend)
	switch {
	case !known || !of.Looped():
		return trend, ""
	case closed || !t.OpenLoop:
		return trend, recording.Closed.String()
	}
	return trend, recording.Open.String()
}

// QuantileName returns the common name of a quantile: p99.9.
func QuantileName(q float64) string {
	if q == 1 {
		return "maximum"
	}
	return "p" + strconv.FormatFloat(math.Round(q*1e8)/1e6, 'f', -1, 64)
}
