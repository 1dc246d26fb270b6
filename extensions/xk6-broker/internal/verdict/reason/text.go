package reason

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Text returns the reason as one line: where, what happened, what to do.
func Text(r Reason) string {
	row := table[r.Code]
	i := slices.IndexFunc(row.Variants, func(v variant) bool { return v.Why == r.Word("why") })
	if i < 0 {
		return string(r.Code)
	}
	text := fill(cmp.Or(row.Variants[i].Text, row.Text), r.Values)
	if remedy := cmp.Or(row.Variants[i].Remedy, row.Remedy); remedy != "" {
		text += ". " + fill(remedy, r.Values)
	}
	var where []string
	if r.Topics > 0 {
		where = append(where, several(r.Topics, "topics", r.Topic, row))
	} else if r.Topic != "" {
		where = append(where, r.Topic)
	}
	if r.Group != "" {
		where = append(where, "group "+r.Group)
	}
	if r.Phase != "" {
		where = append(where, "phase "+r.Phase)
	}
	if len(where) > 0 {
		text = strings.Join(where, ", ") + ": " + text
	}
	if r.Processes > 1 {
		return several(r.Processes, "processes", r.Process, row) + ": " + text
	}
	if r.Process != "" {
		return r.Process + ": " + text
	}
	return text
}

// several names the worst of several things, if the row has a value by which one is the worst.
func several(n int, things, name string, row entry) string {
	text := fmt.Sprintf("%d %s", n, things)
	if row.Worst != "" {
		text += ", worst in " + name
	}
	return text
}

// Texts returns the lines to show of reasons: the text, and the code in square brackets.
func Texts(reasons []Reason) []string {
	lines := []string{}
	for _, r := range Grouped(reasons) {
		lines = append(lines, fmt.Sprintf("%s [%s]", Text(r), r.Code))
	}
	return lines
}

var (
	// optional is a part of a text in brackets, which is left out if one of its values is missing.
	optional = regexp.MustCompile(`\[[^\]]*\]`)
	// placeholder is {name:format}; without a format the value is text.
	placeholder = regexp.MustCompile(`\{(\w+)(?::(\w+))?\}`)
)

// fill replaces the placeholders of a template. A value that is missing outside of brackets is "?".
func fill(template string, values Values) string {
	template = optional.ReplaceAllStringFunc(template, func(part string) string {
		for _, p := range placeholder.FindAllStringSubmatch(part, -1) {
			if value, ok := values[p[1]]; !ok || value == "" {
				return ""
			}
		}
		return part[1 : len(part)-1]
	})
	return placeholder.ReplaceAllStringFunc(template, func(p string) string {
		name := placeholder.FindStringSubmatch(p)
		return format(name[2], values[name[1]])
	})
}

func format(as string, value any) string {
	n, isNumber := value.(float64)
	if !isNumber {
		word, _ := value.(string)
		return cmp.Or(word, "?")
	}
	text := strconv.FormatFloat(math.Round(10*n)/10, 'f', -1, 64)
	switch {
	case as == "percent":
		return Percent(n)
	case as == "duration":
		return Duration(time.Duration(n * float64(time.Second)))
	case as == "messages" && n == 1:
		return "1 message"
	case as == "messages":
		return text + " messages"
	}
	return text
}

// Duration returns a duration with at most four digits.
func Duration(d time.Duration) string {
	unit := 100 * time.Nanosecond
	for limit := time.Millisecond; d > limit && limit < time.Hour; limit *= 10 {
		unit = limit / 100
	}
	return d.Round(unit).String()
}

// Percent returns a share as a percentage with two significant digits.
func Percent(share float64) string {
	p := 100 * share
	digits := 0
	if p > 0 && p < 10 {
		digits = 1 - int(math.Floor(math.Log10(p)))
	}
	return strconv.FormatFloat(p, 'f', digits, 64) + " %"
}

// Markdown returns the table of all codes, for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| code | level | speaks against | text | cause | what to do |\n|---|---|---|---|---|---|\n")
	for _, code := range slices.Sorted(maps.Keys(table)) {
		row := table[code]
		var texts, remedies []string
		if row.Text != "" {
			texts = append(texts, described("", row.Text))
		}
		if row.Remedy != "" {
			remedies = append(remedies, row.Remedy)
		}
		for _, v := range row.Variants {
			if v.Text != "" {
				texts = append(texts, described(v.Why, v.Text))
			}
			if v.Remedy != "" {
				remedies = append(remedies, described(v.Why, v.Remedy))
			}
		}
		cells := []string{
			"`" + string(code) + "`", row.Level, cmp.Or(row.Against, "–"),
			strings.Join(texts, "<br>"), row.Cause, strings.Join(remedies, "<br>"),
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

var messagesOf = regexp.MustCompile(`\{(\w+):messages\}`)

// described returns a template with the names of its values, after the variant that has it.
func described(why, template string) string {
	text := messagesOf.ReplaceAllString(template, "*$1* messages")
	text = strings.NewReplacer("[", "", "]", "", "|", `\|`).Replace(text)
	text = strings.TrimSuffix(placeholder.ReplaceAllString(text, "*$1*"), ".") + "."
	if why != "" {
		text = "`" + why + "`: " + text
	}
	return text
}
