package load

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
)

// mostUses bounds how many different users of one sort are remembered: a script may give each iteration options of its own.
const mostUses = 16

// Uses are the options of all that use a topic, by what they are of: "connect", "topic", "producer", "consumer", "produce" or
// "consume". Those of two that are alike are there once.
type Uses map[string][]map[string]any

func (u Uses) add(of string, options map[string]any) {
	have := u[of]
	if len(have) == mostUses || slices.ContainsFunc(have, func(o map[string]any) bool { return reflect.DeepEqual(o, options) }) {
		return
	}
	u[of] = append(have, options)
}

// sorted gives them in an order that does not depend on who came first.
func (u Uses) sorted() Uses {
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

// Use notes the options in force for one that uses the topic, defaults included and secrets masked: of a connection ("connect"), of
// the topic's creation ("topic"), of a "producer" or a "consumer", or of a loop ("produce", "consume").
func (t *Topic) Use(of string, options map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uses.add(of, options)
}
