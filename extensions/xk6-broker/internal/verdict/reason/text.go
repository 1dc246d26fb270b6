package reason

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Text returns the reason as one line: where, what happened, what to do.
func Text(r Reason) string {
	e := table[r.Code]
	v, ok := e.variant(r.Word("why"))
	if !ok {
		return string(r.Code)
	}
	text := fill(v.text, r.Values)
	remedy := v.remedy
	if remedy == "" {
		remedy = e.remedy
	}
	if remedy != "" {
		text += ". " + fill(remedy, r.Values)
	}
	var place []string
	switch {
	case r.Topics > 0 && e.worst != "":
		place = append(place, fmt.Sprintf("%d topics, worst in %s", r.Topics, r.Topic))
	case r.Topics > 0:
		place = append(place, fmt.Sprintf("%d topics", r.Topics))
	case r.Topic != "":
		place = append(place, r.Topic)
	}
	switch r.Group {
	case "":
	case "subscribers", "read back": // what results call consumers without a group, and messages that are read back
		place = append(place, r.Group)
	default:
		place = append(place, "group "+r.Group)
	}
	if r.Phase != "" {
		place = append(place, "phase "+r.Phase)
	}
	if len(place) > 0 {
		text = strings.Join(place, ", ") + ": " + text
	}
	switch {
	case r.Processes > 1 && e.worst != "":
		text = fmt.Sprintf("%d processes, worst in %s: %s", r.Processes, r.Process, text)
	case r.Processes > 1:
		text = fmt.Sprintf("%d processes: %s", r.Processes, text)
	case r.Process != "":
		text = r.Process + ": " + text
	}
	return text
}

// Texts returns the lines to show of reasons.
func Texts(reasons []Reason) []string {
	lines := []string{}
	for _, r := range Grouped(reasons) {
		lines = append(lines, Text(r))
	}
	return lines
}

var (
	// optional is a part of a text in brackets, which is left out if a value of it is missing.
	optional = regexp.MustCompile(`\[[^\]]*\]`)
	// placeholder is {name:format}; without a format the value is text.
	placeholder = regexp.MustCompile(`\{(\w+)(?::(\w+))?\}`)
)

// fill replaces the placeholders of a template. A value that is missing outside of brackets is "?".
func fill(template string, values Values) string {
	template = optional.ReplaceAllStringFunc(template, func(part string) string {
		part = part[1 : len(part)-1]
		for _, p := range placeholder.FindAllStringSubmatch(part, -1) {
			if value, ok := values[p[1]]; !ok || value == "" {
				return ""
			}
		}
		return part
	})
	return placeholder.ReplaceAllStringFunc(template, func(p string) string {
		name := placeholder.FindStringSubmatch(p)
		return format(name[2], values[name[1]])
	})
}

func format(as string, value any) string {
	n, isNumber := value.(float64)
	switch {
	case !isNumber:
		if word, _ := value.(string); word != "" {
			return word
		}
		return "?"
	case as == "percent":
		return Percent(n)
	case as == "duration":
		return Duration(time.Duration(n * float64(time.Second)))
	case as == "messages" && n == 1:
		return "1 message"
	}
	text := strconv.FormatFloat(math.Round(10*n)/10, 'f', -1, 64)
	if as == "messages" {
		text += " messages"
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
	if p >= 10 {
		return fmt.Sprintf("%.0f %%", p)
	}
	if p <= 0 {
		return "0 %"
	}
	digits := 1 - int(math.Floor(math.Log10(p)))
	return strconv.FormatFloat(p, 'f', max(0, digits), 64) + " %"
}
