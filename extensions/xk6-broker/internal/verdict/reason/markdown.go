package reason

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// against are the texts of [Against].
var against = [...]string{"–", "latencies", "account", "latencies and account"}

// Markdown returns the table of all codes, for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| code | level | speaks against | text | cause | what to do |\n|---|---|---|---|---|---|\n")
	for _, code := range slices.Sorted(maps.Keys(table)) {
		row := table[code]
		var texts, remedies, levels []string
		if row.remedy != "" {
			remedies = append(remedies, row.remedy)
		}
		for _, v := range row.variants {
			texts = append(texts, described(v.why, v.text))
			if v.remedy != "" {
				remedies = append(remedies, described(v.why, v.remedy))
			}
		}
		for _, l := range row.levels {
			levels = append(levels, string(l))
		}
		cells := []string{
			"`" + string(code) + "`", strings.Join(levels, " or "), against[row.against], strings.Join(texts, "<br>"), row.cause, strings.Join(remedies, "<br>"),
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

var messagesOf = regexp.MustCompile(`\{(\w+):messages\}`)

// described returns a template with the names of its values, after the variant that has it.
func described(why, template string) string {
	text := strings.NewReplacer("[", "", "]", "", "|", `\|`).Replace(messagesOf.ReplaceAllString(template, "*$1* messages"))
	text = placeholder.ReplaceAllString(text, "*$1*")
	if why != "" {
		text = "`" + why + "`: " + text
	}
	return text
}
