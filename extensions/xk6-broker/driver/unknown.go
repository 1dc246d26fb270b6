package driver

import (
	"fmt"
	"slices"
	"strings"
)

// UnknownOptionError is the error about an option that a driver does not have where it was given.
// Whoever has options beside the driver's adds them.
type UnknownOptionError struct {
	Driver string
	Name   string
	Where  string   // " here", [InURL], or "" where the options of all scopes may be given
	Known  []string // what there is instead, the most usual first
}

// InURL is where an option of a URL's query is.
const InURL = " in the URL"

func (e *UnknownOptionError) Error() string {
	return fmt.Sprintf("%s has no option %q%s%s: known are %s", e.Driver, e.Name, e.Where, Suggest(e.Name, e.Known), strings.Join(e.Known, ", "))
}

// Suggest is what an error about an unknown name adds: which of the known ones may be meant, " (did
// you mean group?)", or "" where none is near.
func Suggest(given string, known []string) string {
	meant := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !strings.HasPrefix(name, given+"-") }) // of that family
	least := min(2, (len(given)+1)/4)
	for _, name := range known {
		if d := distance(strings.ToLower(given), strings.ToLower(name)); d <= least && name != given {
			least, meant = d-1, []string{name}
		}
	}
	if given == "" || len(meant) == 0 {
		return ""
	}
	last := len(meant) - 1
	if last == 0 {
		return fmt.Sprintf(" (did you mean %s?)", meant[0])
	}
	return fmt.Sprintf(" (did you mean %s or %s?)", strings.Join(meant[:last], ", "), meant[last])
}

// distance is how many letters one must add, leave out, replace, or exchange with the next, to make
// b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
