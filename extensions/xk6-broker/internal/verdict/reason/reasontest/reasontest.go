// Package reasontest finds reasons in tests, by their codes and values.
package reasontest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Has reports whether one of the reasons has all words: "invalid" or "note", a code, "why=joining" or another value, "topic=orders",
// "group=", "phase=", "process=", "processes=2". Words are separated by spaces; in a value "_" stands for a space.
func Has(reasons []reason.Reason, words string) bool {
	return slices.ContainsFunc(reasons, func(r reason.Reason) bool {
		has := map[string]string{
			"topic": r.Topic, "group": r.Group, "phase": r.Phase, "process": r.Process, "processes": fmt.Sprint(r.Processes),
		}
		for name, value := range r.Values {
			has[name] = fmt.Sprint(value)
			if n, ok := value.(float64); ok {
				has[name] = fmt.Sprintf("%.4g", n)
			}
		}
		for word := range strings.FieldsSeq(words) {
			name, want, isValue := strings.Cut(word, "=")
			if isValue && strings.ReplaceAll(has[name], " ", "_") != want ||
				!isValue && word != string(r.Level) && word != string(r.Code) {
				return false
			}
		}
		return true
	})
}

// Codes returns the level, code and values of each reason, for messages of tests.
func Codes(reasons []reason.Reason) (all []string) {
	for _, r := range reasons {
		all = append(all, fmt.Sprintf("%s: %s %s %s %v", r.Process, r.Level, r.Code, r.Topic, r.Values))
	}
	return all
}
