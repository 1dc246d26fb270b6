// Package reason has the reasons why a result is not reliable, as data, with one table of texts,
// causes and remedies. Merging and grouping compare codes and values. Texts are made last.
package reason

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
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
	Note    Level = "note"    // the result is valid
)

// Values are the values of a reason: a float64, a duration as float64 in seconds, or a string.
type Values map[string]any

// Reason is one statement about a result.
type Reason struct {
	Code      Code   `json:"code"`
	Level     Level  `json:"level"`
	Topic     string `json:"topic,omitempty"` // with the broker if two have a topic of this name
	Group     string `json:"group,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Values    Values `json:"values"`
	Process   string `json:"process,omitempty"`   // in a merged result: the process that it is worst in
	Processes int    `json:"processes,omitempty"` // in a merged result: how many processes have it
	Topics    int    `json:"topics,omitempty"`    // when grouped: how many topics have it
}

// New returns a reason. Its values become as they are after a round trip through JSON.
func New(code Code, level Level, values Values) Reason {
	r := Reason{Code: code, Level: level, Values: Values{}}
	for name, value := range values {
		if d, ok := value.(time.Duration); ok {
			value = d.Seconds()
		}
		switch v := reflect.ValueOf(value); {
		case v.CanInt():
			value = float64(v.Int())
		case v.CanUint():
			value = float64(v.Uint())
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

// Against reports what the code speaks against.
func (c Code) Against() (latencies, account bool) {
	against := table[c].Against
	return strings.Contains(against, "latencies"), strings.Contains(against, "account")
}

// ByMerge reports whether a merge decides on the reason anew.
func (r Reason) ByMerge() bool {
	return table[r.Code].ByMerge || r.Code == PercentileNotReliable && r.Word("why") == "missing"
}

// Same reports whether two reasons are the same statement, perhaps of different processes.
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
	if r.Code != o.Code || r.Level != o.Level || r.Group != o.Group || r.Phase != o.Phase {
		return false
	}
	keys := append([]string{"why"}, table[r.Code].Keys...)
	return !slices.ContainsFunc(keys, func(name string) bool { return r.Values[name] != o.Values[name] })
}

// worst returns the worst of reasons that are alike, by the value that the table names.
func worst(alike []Reason) Reason {
	name, smaller := strings.CutPrefix(table[alike[0].Code].Worst, "-")
	return slices.MaxFunc(alike, func(a, b Reason) int {
		if smaller {
			a, b = b, a
		}
		return cmp.Compare(a.Number(name), b.Number(name))
	})
}

// fold replaces each set of reasons that are the same by others, in the place of the first.
func fold(reasons []Reason, same func(a, b Reason) bool, replace func(set []Reason) []Reason) (folded []Reason) {
	for len(reasons) > 0 {
		var set, rest []Reason
		for _, r := range reasons {
			if same(reasons[0], r) {
				set = append(set, r)
			} else {
				rest = append(rest, r)
			}
		}
		folded, reasons = append(folded, replace(set)...), rest
	}
	return folded
}

// Worst returns the worst of each statement of several processes, with their number.
func Worst(reasons []Reason) []Reason {
	return fold(reasons, Reason.Same, func(set []Reason) []Reason {
		r := worst(set)
		r.Processes = len(set)
		return []Reason{r}
	})
}

// severalTopics is the number of topics from which a statement is shown once.
const severalTopics = 3

// Grouped returns the reasons to show: the worst of a statement on three topics or more.
func Grouped(reasons []Reason) []Reason {
	return fold(reasons, Reason.alike, func(set []Reason) []Reason {
		topics, processes := map[string]bool{}, map[string]bool{}
		for _, r := range set {
			topics[r.Topic], processes[r.Process] = true, true
		}
		if len(topics) < severalTopics {
			return set
		}
		r := worst(set)
		if r.Topics = len(topics); len(processes) > 1 {
			r.Process, r.Processes = "", 0
		}
		return []Reason{r}
	})
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
