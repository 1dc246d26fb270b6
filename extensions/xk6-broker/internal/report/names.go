package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// longestName bounds what a topic or a script adds to a file's name, in bytes.
const longestName = 100

// Sanitise makes a name that any file system takes: letters, digits, '.', '_' and '-', not beginning with a dot or a dash.
func Sanitise(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if len(safe) > longestName {
		safe = safe[:longestName]
	}
	if safe != "" && (safe[0] == '.' || safe[0] == '-') {
		safe = "_" + safe[1:]
	}
	return safe
}

// names gives each topic a name for its files that no other topic has, not even where case does not count.
type names map[[2]string]string

func newNames(r *result.Result) names {
	n, taken := names{}, map[string]bool{}
	for _, t := range r.Topics {
		safe := Sanitise(t.Topic)
		name := safe
		for i := 2; name == "" || taken[strings.ToLower(name)]; i++ {
			name = fmt.Sprintf("%s-%d", safe, i)
		}
		taken[strings.ToLower(name)] = true
		n[[2]string{t.Broker, t.Topic}] = name
	}
	return n
}

func (n names) of(broker, topic string) string { return n[[2]string{broker, topic}] }

// trendNames lists the trends of a topic that have values, sorted.
func trendNames(t *result.Topic) []string {
	return slices.Sorted(maps.Keys(t.Trends))
}
