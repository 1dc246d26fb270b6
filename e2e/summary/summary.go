// Package summary reads the result of a run of k6, summary.json or broker.result(), as a user's
// program does: by the schema and with HdrHistogram's own library, without the code that wrote it.
package summary

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The files in every folder of results.
const (
	File = "summary.json"
	Page = "report.html"
)

// Summary is the part of a result that the tests read.
type Summary struct {
	Name        string
	Started     time.Time
	Seconds     float64
	Processes   int
	Segment     struct{ Of, Sequence string }
	Missing     []string // processes that did not arrive
	Clock       *struct{ Offset, Bound int64 }
	Clocks      []Clock // of a result of several processes
	Dropped     uint64
	Environment map[string]string
	Test        struct {
		Script    string
		Scenarios []Scenario
	}
	Checks []Check
	Marks  []struct {
		At   float64
		What string
	}
	Topics     []Topic
	Thresholds []Threshold
	Verdict    Verdict
}

// Clock is the offset of one clock from another, in ns.
type Clock struct {
	Of, Than      string
	Offset, Bound int64
	Same          bool
}

// Scenario is a scenario of the test.
type Scenario struct {
	Name, Executor, Exec string
	VUs, MaxVUs          uint64
	Options              map[string]any
}

// Check is a check of the script.
type Check struct {
	Name          string
	Passes, Fails int64
}

// Topic has the measurements of a topic.
type Topic struct {
	Topic   string
	Counts  map[string]int64
	Options map[string][]map[string]any
	Errors  []struct {
		Op, Kind string
		Count    int64
	}
	Groups  []Group
	Trends  map[string]*Histogram
	Phases  map[string]struct{ Counts map[string]int64 }
	History []struct {
		Seconds     float64
		Outstanding uint64
	}
}

// Group has the account of a group and the measurements of its consumers.
type Group struct {
	Account
	Members int
	Trends  map[string]*Histogram
}

// Account counts the messages that a group expected.
type Account struct {
	Group                                                             string
	Expected, Received, Missing, Lost, Undelivered, Uncertain, Routed uint64
	Duplicated, Redelivered, Reordered, Unexpected, Foreign, Drained  uint64
	Why                                                               map[string]uint64 // of uncertain messages
}

// Threshold is a condition and its decision.
type Threshold struct {
	Metric, Source string
	Held, Judged   bool
	Value          *float64
	Why            string
}

// Verdict is the verdict of the run.
type Verdict struct {
	Valid   bool
	UpTo    float64
	Reasons []Reason
}

// Reason is a statement about the run: docs/verdicts.md lists the codes.
type Reason struct {
	Code, Level, Topic, Process, Text string
	Values                            map[string]any
}

// Why returns the variant of its code.
func (r Reason) Why() string {
	why, _ := r.Values["why"].(string)
	return why
}

// Find returns the first reason of a code, and of a variant if why is not "".
func (v Verdict) Find(code, why string) (Reason, bool) {
	for _, r := range v.Reasons {
		if r.Code == code && (why == "" || r.Why() == why) {
			return r, true
		}
	}
	return Reason{}, false
}

// Has reports whether there is such a reason.
func (v Verdict) Has(code, why string) bool {
	_, ok := v.Find(code, why)
	return ok
}

// Read reads a folder of results.
func Read(folder string) (*Summary, error) {
	text, err := os.ReadFile(filepath.Join(folder, File)) //gosec:disable G304 -- a result of k6
	if err != nil {
		return nil, err
	}
	var s Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return &s, nil
}

// Histogram is a distribution of nanoseconds, with the exact extremes. Nil has no values.
type Histogram struct {
	Count    int64
	Min, Max int64
	hdr      *hdrhistogram.Histogram
}

// NewHistogram returns a histogram without values, for nanoseconds.
func NewHistogram() *Histogram {
	return &Histogram{Min: math.MaxInt64, hdr: hdrhistogram.New(1, int64(3600e9), 3)}
}

// Record adds a value of an hour at most.
func (h *Histogram) Record(ns int64) {
	if err := h.hdr.RecordValue(ns); err != nil {
		panic(err)
	}
	h.Count, h.Min, h.Max = h.Count+1, min(h.Min, ns), max(h.Max, ns)
}

// UnmarshalJSON reads a histogram of a result.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var document struct {
		Count, Min, Max int64
		HDR             string
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	hdr, err := hdrhistogram.Decode([]byte(document.HDR))
	if err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	if hdr.TotalCount() != document.Count {
		return fmt.Errorf("histogram: count %d, and %d values", document.Count, hdr.TotalCount())
	}
	*h = Histogram{document.Count, document.Min, document.Max, hdr}
	return nil
}

// Quantile returns the value that a share q of all values do not exceed, to three digits.
func (h *Histogram) Quantile(q float64) int64 { return min(h.Max, h.hdr.ValueAtQuantile(100*q)) }

// Mean returns the mean, to three digits.
func (h *Histogram) Mean() float64 { return h.hdr.Mean() }

// Milliseconds returns the quantile in ms.
func (h *Histogram) Milliseconds(q float64) float64 { return float64(h.Quantile(q)) / 1e6 }
