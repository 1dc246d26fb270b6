// Package result is the model of summary.json: types, and their measurements from a recording. It decides nothing.
package result

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
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
	Unfinished  bool              `json:"unfinished,omitempty"` // the process was killed: its measurements are in its recording
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
	Dropped     uint64            `json:"dropped"`  // iterations that k6 dropped, or that maxDuration left of a given number
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
	Confirm     string                     `json:"confirm"`    // the least that a confirmation proved; "" if nothing was sent
	Proofs      []Proof                    `json:"proofs"`     // of confirmations, by the producers' options
	OpenLoop    bool                       `json:"openLoop"`   // sent by a schedule; in a closed loop due is sent
	ClosedLoop  bool                       `json:"closedLoop"` // something was sent by no schedule
	Declared    bool                       `json:"declared"`   // the script has a consumer for it
	OnlySends   bool                       `json:"onlySends"`  // the driver has no consumers: only messages read back are observed
	Options     Uses                       `json:"options"`    // in force for each that used it
	Counts      map[string]int64           `json:"counts"`
	Errors      []ErrorCount               `json:"errors"`
	Trends      map[string]*hist.Histogram `json:"trends"`      // with both loops, those of the closed one end in "_closed"
	Percentiles map[string][]Percentile    `json:"percentiles"` // of each trend, read from its histogram
	Groups      []Group                    `json:"groups"`      // empty: nothing consumed here, loss was not observed
	History     []Point                    `json:"history"`
	Spans       map[string]Span            `json:"spans,omitempty"`  // of the counters sent, confirmed and received
	OverTime    map[string][]Summary       `json:"overTime"`         // of each trend, in intervals long enough for a p99 if possible
	Phases      map[string]Window          `json:"phases,omitempty"` // by name
	Apart       *Clocks                    `json:"apart,omitempty"`  // the worst two clocks that measured its latencies to consumers

	Shared     bool `json:"-"` // other processes of the test may use it, and their part is not in here
	Alone      bool `json:"-"` // there is no other process
	HeldUnseen bool `json:"-"` // the broker does not report messages that outside clients hold unsettled

	Hiccups *hist.Histogram `json:"-"` // of the platform, while the topic was in use
	During  *Phase          `json:"-"` // that it was cut to; nil for the whole run
	Whole   *Topic          `json:"-"` // the topic that it was cut from; nil for the whole run
}

// Group is the measurement and the account of one group of consumers.
type Group struct {
	account.Account
	Members     int                        `json:"members"` // the most consumers in it at a time, subscribers together
	Trends      map[string]*hist.Histogram `json:"trends"`  // of the consumers' side
	Percentiles map[string][]Percentile    `json:"percentiles"`

	Kept      bool  `json:"-"` // received and unsettled messages come again
	Strangers int64 `json:"-"` // received that no producer of the topic sent, as this process knows
}

// Server is a broker and the client that it is reached by.
type Server struct {
	Server   string `json:"server"`   // product and version
	Client   string `json:"client"`   // library and version
	Nodes    int    `json:"nodes"`    // how many servers the client knows of; 0 if unknown
	Embedded bool   `json:"embedded"` // the server runs inside the process
}

// Several reports whether the result is joined from those of several processes.
func (r *Result) Several() bool { return r.Environment["processes"] != "" }

// Used reports whether anything was done with the topic, beyond its creation.
func (t *Topic) Used() bool {
	return t.OpenLoop || t.ClosedLoop || len(t.Counts) > 0 || len(t.Errors) > 0 || len(t.Groups) > 0 || len(t.Options["producer"]) > 0
}

// Copies reports whether the account has duplicates of the group: not of other topics' messages, nor of those read back.
func (g *Group) Copies() bool {
	return g.Group != account.ReadBack && (g.Received+g.Drained > 0 || g.Strangers == 0)
}
