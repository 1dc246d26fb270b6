// Package reasontest finds reasons in tests, by their codes and values.
package reasontest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Has reports whether one of the reasons is as all words say: "invalid" or "note", a code, "why=joining" or another value, "topic=orders",
// "group=", "phase=", "process=", "processes=2". Words are separated by spaces; in a value "_" stands for a space.
func Has(reasons []reason.Reason, words string) bool {
	return slices.ContainsFunc(reasons, func(r reason.Reason) bool {
		return !slices.ContainsFunc(strings.Fields(words), func(word string) bool { return !is(r, word) })
	})
}

// Codes returns the level, code and variant of each reason, for messages of tests.
func Codes(reasons []reason.Reason) (all []string) {
	for _, r := range reasons {
		all = append(all, fmt.Sprintf("%s: %s %s %s %v", r.Process, r.Level, r.Code, r.Topic, r.Values))
	}
	return all
}

func is(r reason.Reason, word string) bool {
	name, want, isValue := strings.Cut(word, "=")
	if !isValue {
		return word == string(r.Level) || word == string(r.Code)
	}
	has := map[string]string{"topic": r.Topic, "group": r.Group, "phase": r.Phase, "process": r.Process, "processes": strconv.Itoa(r.Processes)}[name]
	switch v := r.Values[name].(type) {
	case string:
		has = v
	case float64:
		has = strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strings.ReplaceAll(has, " ", "_") == want
}
