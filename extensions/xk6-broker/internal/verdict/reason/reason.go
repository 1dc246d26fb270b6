// Package reason holds why a result cannot be relied on, and what its reader must know: as data, with one table of codes, texts,
// causes and remedies. Merging and grouping compare codes and values; a text is made where one is shown.
package reason

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Code names a kind of reason.
type Code string

// Level is how much a reason weighs.
type Level string

// Levels.
const (
	Invalid Level = "invalid" // the result is not valid
	Note    Level = "note"    // the result is valid, and its reader must know this
)

// Values are the numbers and words of a reason. A number is a float64, a duration a float64 in seconds, a word a string.
type Values map[string]any

// Reason is one statement about a result.
type Reason struct {
	Code      Code   `json:"code"`
	Level     Level  `json:"level"`
	Topic     string `json:"topic,omitempty"` // as users see it: with the broker's address where two brokers have a topic of this name
	Group     string `json:"group,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Values    Values `json:"values"`
	Process   string `json:"process,omitempty"`   // in a merged result: the process that it is worst in
	Processes int    `json:"processes,omitempty"` // in a merged result: how many processes have it
	Topics    int    `json:"topics,omitempty"`    // when grouped: how many topics have it
}

// New returns a reason. Values of any integer type become float64, and durations seconds, as they are after a round trip through JSON.
func New(code Code, level Level, values Values) Reason {
	r := Reason{Code: code, Level: level, Values: Values{}}
	for name, value := range values {
		switch v := value.(type) {
		case int:
			value = float64(v)
		case int64:
			value = float64(v)
		case uint32:
			value = float64(v)
		case uint64:
			value = float64(v)
		case time.Duration:
			value = v.Seconds()
		}
		r.Values[name] = value
	}
	return r
}

// Number returns a value, or 0 if there is no such number.
func (r Reason) Number(name string) float64 {
	n, _ := r.Values[name].(float64)
	return n
}

// Word returns a value, or "" if there is no such word.
func (r Reason) Word(name string) string {
	s, _ := r.Values[name].(string)
	return s
}

// MarshalJSON adds the text, for readers without the table.
func (r Reason) MarshalJSON() ([]byte, error) {
	type plain Reason
	text, err := json.Marshal(struct {
		plain
		Text string `json:"text"`
	}{plain(r), Text(r)})
	if err != nil {
		return nil, fmt.Errorf("reason: %w", err)
	}
	return text, nil
}

// Check returns an error if the table does not have the code, the level or the variant.
func (r Reason) Check() error {
	e, found := table[r.Code]
	_, ok := e.variant(r.Word("why"))
	switch {
	case !found:
		return fmt.Errorf("reason: unknown code %q", r.Code)
	case !slices.Contains(e.levels, r.Level):
		return fmt.Errorf("reason: %s has no level %q", r.Code, r.Level)
	case !ok:
		return fmt.Errorf("reason: %s has no %q", r.Code, r.Word("why"))
	}
	return nil
}

// Against reports what the code speaks against.
func (c Code) Against() (latencies, account bool) {
	return table[c].against&Latencies != 0, table[c].against&Account != 0
}

// ByMerge reports whether a merge decides on the reason anew, by what all processes have: that of one process does not count.
func (r Reason) ByMerge() bool {
	return table[r.Code].byMerge || r.Code == PercentileNotReliable && r.Word("why") == "missing"
}

// Same reports whether two reasons are the same statement, with other numbers perhaps. They may be of different processes.
func (r Reason) Same(o Reason) bool { return r.Topic == o.Topic && r.alike(o) }

// Covers reports whether r is the same statement as o, and weighs as much at least.
func (r Reason) Covers(o Reason) bool {
	if r.Level == Invalid {
		o.Level = Invalid
	}
	return r.Same(o)
}

// alike is [Reason.Same] for any topic.
func (r Reason) alike(o Reason) bool {
	if r.Code != o.Code || r.Level != o.Level || r.Group != o.Group || r.Phase != o.Phase || r.Word("why") != o.Word("why") {
		return false
	}
	return !slices.ContainsFunc(table[r.Code].keys, func(name string) bool { return r.Values[name] != o.Values[name] })
}

// worse reports whether the declared value of r is worse than that of o.
func (r Reason) worse(o Reason) bool {
	name, smaller := strings.CutPrefix(table[r.Code].worst, "-")
	if smaller {
		r, o = o, r
	}
	return r.Number(name) > o.Number(name)
}

// Worst returns the reasons of several processes, each with its Process: of the same statement the worst, with the number of processes.
func Worst(reasons []Reason) (worst []Reason) {
	for _, r := range reasons {
		r.Processes = max(1, r.Processes)
		i := slices.IndexFunc(worst, r.Same)
		if i < 0 {
			worst = append(worst, r)
			continue
		}
		n := worst[i].Processes + r.Processes
		if r.worse(worst[i]) {
			worst[i] = r
		}
		worst[i].Processes = n
	}
	return worst
}

// severalTopics is the number of topics from which a statement is shown once.
const severalTopics = 3

// Grouped returns the reasons to show: of the same statement on three topics or more the worst, with the number of topics.
func Grouped(reasons []Reason) (shown []Reason) {
	for _, r := range reasons {
		if r.Topic == "" {
			shown = append(shown, r)
			continue
		}
		if slices.ContainsFunc(shown, func(s Reason) bool { return s.Topics > 0 && s.alike(r) }) {
			continue
		}
		topics, worst, process := map[string]bool{}, r, r.Process
		for _, o := range reasons {
			if o.Topic == "" || !o.alike(r) {
				continue
			}
			topics[o.Topic] = true
			if o.Process != process {
				process = ""
			}
			if o.worse(worst) {
				worst = o
			}
		}
		if len(topics) >= severalTopics {
			r = worst
			if r.Topics = len(topics); process == "" { // of several
				r.Process, r.Processes = "", 0
			}
		}
		shown = append(shown, r)
	}
	return shown
}

// Codes returns the codes of reasons, each once, in their order.
func Codes(reasons []Reason) string {
	var codes []string
	for _, r := range reasons {
		if !slices.Contains(codes, string(r.Code)) {
			codes = append(codes, string(r.Code))
		}
	}
	return strings.Join(codes, ", ")
}
