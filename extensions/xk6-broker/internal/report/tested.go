package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// fact is an option and its value, as a reader sees them.
type fact struct{ Name, Value string }

func (f fact) String() string { return f.Name + " " + f.Value }

// first are the options that say how much load there was, in a reader's order; the others follow by name.
var first = []string{
	"group", "rate", "startRate", "stages", "timeUnit", "arrivals", "seed", "trace", "iterations", "count", "duration", "maxDuration", "startTime",
	"producers", "consumers", "partitions", "replicas", "profile", "prefetch", "start", "maxInFlight", "connections",
}

// factsOf lists options. Those that are empty are left out.
func factsOf(options map[string]any) []fact {
	rank := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	names := slices.SortedFunc(maps.Keys(options), func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	var all []fact
	for _, name := range names {
		if value := Value(options[name]); value != "" {
			all = append(all, fact{name, value})
		}
	}
	return all
}

// Value writes an option's value, the same before and after it went through JSON.
func Value(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []string:
		return strings.Join(v, ", ")
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = Value(one)
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
		if target, ok := v["target"]; ok && len(v) == 2 && v["duration"] != nil { // a stage
			return fmt.Sprintf("to %s in %s", Value(target), Value(v["duration"]))
		}
		parts := make([]string, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+"="+Value(v[name]))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v)
}

// vus writes how many VUs a scenario has.
func vus(s result.Scenario) string {
	text := fmt.Sprint(s.VUs)
	if s.MaxVUs > s.VUs {
		text += fmt.Sprintf(" to %d", s.MaxVUs)
	}
	if s.MaxVUs == 1 {
		return text + " VU"
	}
	return text + " VUs"
}

// user is one that used a topic, with its options.
type user struct {
	Name  string
	Facts []fact
}

// userNames are what each sort of user is called, in the page's order.
var userNames = []struct{ of, name string }{
	{"connect", "connection"},
	{"topic", "topic, as created"},
	{"producer", "producer"},
	{"consumer", "consumer"},
	{"replies", "replies to requests"},
	{"produce", "produce() loop"},
	{"consume", "consume() loop"},
}

// usersOf lists all that used a topic.
func usersOf(t *result.Topic) []user {
	var all []user
	if size := meanSize(t); size != "" {
		all = append(all, user{"messages", []fact{{"mean size", size}}})
	}
	for _, n := range userNames {
		for _, options := range t.Options[n.of] {
			u := user{n.name, factsOf(options)}
			if members := membersOf(t, options); n.of == "consumer" && members > 0 {
				u.Name = plural(members, "consumer")
			}
			all = append(all, u)
		}
	}
	return all
}

// membersOf is how many consumers had these options at most at a time; 0 where others of the same group had other options.
func membersOf(t *result.Topic, options map[string]any) int {
	alike := 0
	for _, other := range t.Options["consumer"] {
		if other["group"] == options["group"] {
			alike++
		}
	}
	for _, g := range t.Groups {
		if name, _ := options["group"].(string); alike == 1 && (g.Group == name || g.Subscribers > 0 && name == "") {
			return g.Members
		}
	}
	return 0
}

// groupName is what a reader calls those that share an account.
func groupName(g result.Group) string {
	switch {
	case g.Subscribers > 0:
		return "subscribers"
	case g.Group == "":
		return "consumers"
	}
	return "group " + g.Group
}

// meanSize is the size of a body; "" where none was sent.
func meanSize(t *result.Topic) string {
	sent := t.Counts[recording.Sent.String()]
	for _, loop := range []recording.Loop{recording.Open, recording.Closed} {
		if t.Trends[recording.RequestLatency.In(loop)] != nil || t.Counts[recording.Unanswered.String()] > 0 { // the bytes are of replies, too
			return ""
		}
	}
	if sent == 0 || t.Counts[recording.BytesSent.String()] == 0 {
		return ""
	}
	mean := float64(t.Counts[recording.BytesSent.String()]) / float64(sent)
	return strconv.FormatFloat(mean, 'f', digits(mean), 64) + " bytes"
}

// digits are the decimals of a mean size: one, unless it is whole or large.
func digits(mean float64) int {
	if mean >= 1000 || mean == float64(int64(mean)) {
		return 0
	}
	return 1
}

// inShort says in one line how a topic was used.
func inShort(t *result.Topic) string {
	var parts []string
	if size := meanSize(t); size != "" {
		parts = append(parts, "messages of "+size)
	}
	distinct := func(of, name string) string {
		var values []string
		for _, options := range t.Options[of] {
			if v := Value(options[name]); v != "" && strings.Trim(v, "0ms") != "" && !slices.Contains(values, v) { // no work is not worth a word
				values = append(values, v)
			}
		}
		return strings.Join(values, ", ")
	}
	for _, o := range []struct{ of, name, label string }{
		{"topic", "partitions", "partitions"},
		{"topic", "replicas", "replicas"},
		{"producer", "profile", "profile"},
		{"producer", "maxInFlight", "maxInFlight"},
		{"consumer", "prefetch", "prefetch"},
		{"replies", "replyTopic", "replies to"},
		{"produce", "rate", "rate"},
		{"produce", "arrivals", "arrivals"},
		{"consume", "work", "work"},
	} {
		if v := distinct(o.of, o.name); v != "" {
			parts = append(parts, o.label+" "+v)
		}
	}
	for _, g := range t.Groups {
		if g.Members > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", groupName(g), plural(g.Members, "consumer")))
		}
	}
	return strings.Join(parts, " · ")
}

func plural[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
