package reason

import (
	"fmt"
	"regexp"
	"strings"
)

// Markdown returns the table of all codes, for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| code | level | speaks against | what it says | cause | what to do |\n|---|---|---|---|---|---|\n")
	for _, code := range order {
		e := table[code]
		var says, whys, remedies []string
		for i, v := range e.variants {
			if v.why != "" {
				whys = append(whys, "`"+v.why+"`")
			}
			if i+1 == len(e.variants) || e.variants[i+1].text != v.text { // the last of those with one text
				says = append(says, named(whys, v.text))
				whys = nil
			}
			if v.remedy != "" && v.why != "" {
				remedies = append(remedies, named([]string{"`" + v.why + "`"}, v.remedy))
			} else if v.remedy != "" {
				remedies = append(remedies, v.remedy)
			}
		}
		if e.remedy != "" {
			remedies = append([]string{e.remedy}, remedies...)
		}
		var levels []string
		for _, l := range e.levels {
			levels = append(levels, string(l))
		}
		against := [...]string{"–", "latencies", "account", "latencies and account"}[e.against]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", code, strings.Join(levels, " or "), against, strings.Join(says, "<br>"), e.cause, strings.Join(remedies, "<br>"))
	}
	return b.String()
}

var messagesOf = regexp.MustCompile(`\{(\w+):messages\}`)

// named returns a template with the names of its values, behind the variants that it is of.
func named(whys []string, template string) string {
	text := strings.NewReplacer("[", "", "]", "", "|", `\|`).Replace(messagesOf.ReplaceAllString(template, "*$1* messages"))
	text = placeholder.ReplaceAllString(text, "*$1*")
	if len(whys) > 0 {
		text = strings.Join(whys, ", ") + ": " + text
	}
	return text
}
