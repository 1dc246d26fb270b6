package result

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
)

// MostUses bounds how many different users of one sort are remembered: a script may give each iteration options of its own.
const MostUses = 16

// Uses are the options of all that use a topic, by what they are of: "connect", "topic", "producer", "consumer", "produce" or
// "consume". Those of two that are alike are there once.
type Uses map[string][]map[string]any

// Add notes the options of one that uses the topic.
func (u Uses) Add(of string, options map[string]any) {
	have := u[of]
	if len(have) == MostUses || slices.ContainsFunc(have, func(o map[string]any) bool { return reflect.DeepEqual(o, options) }) {
		return
	}
	u[of] = append(have, options)
}

// Sorted gives them in an order that does not depend on who came first.
func (u Uses) Sorted() Uses {
	all := make(Uses, len(u))
	for of, options := range u {
		all[of] = slices.SortedFunc(slices.Values(options), func(a, b map[string]any) int {
			x, _ := json.Marshal(a) // scalars and lists of them
			y, _ := json.Marshal(b)
			return cmp.Compare(string(x), string(y))
		})
	}
	return all
}
