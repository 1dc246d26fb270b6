package driver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Values has a value for every option of a scope, of the Go type that [Type] names.
type Values map[string]any

// String returns a String, Enum or File option.
func (v Values) String(name string) string { s, _ := v[name].(string); return s }

// Int returns an Int or Size option.
func (v Values) Int(name string) int64 { n, _ := v[name].(int64); return n }

// Bool returns a Bool option.
func (v Values) Bool(name string) bool { b, _ := v[name].(bool); return b }

// Duration returns a Duration option.
func (v Values) Duration(name string) time.Duration { d, _ := v[name].(time.Duration); return d }

// List returns a List option.
func (v Values) List(name string) []string { l, _ := v[name].([]string); return l }

// Map returns a Map option.
func (v Values) Map(name string) map[string]any { m, _ := v[name].(map[string]any); return m }

// Parse converts a value of a URL (a string) or of JavaScript to the option's Go type.
func (o Option) Parse(raw any) (any, error) {
	if value, ok := o.decode(raw); ok {
		return value, nil
	}
	shown := Show(raw)
	if o.Secret {
		shown = "the value given"
	}
	return nil, fmt.Errorf("option %q: %s is not %s", o.Name, shown, o.want())
}

func (o Option) decode(raw any) (any, bool) {
	text, isScalar := scalar(raw)
	switch o.Type {
	case String, File:
		text, ok := raw.(string)
		return text, ok
	case Enum:
		i := slices.IndexFunc(o.Allowed, func(allowed string) bool { return strings.EqualFold(allowed, text) })
		if i < 0 {
			return nil, false
		}
		return o.Allowed[i], true
	case Bool:
		b, err := strconv.ParseBool(cmp.Or(text, "false"))
		return b, isScalar && err == nil
	case Int:
		n, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
		return n, isScalar && err == nil && o.allows(n)
	case Size:
		n, ok := parseSize(text)
		return n, isScalar && ok && o.allows(n)
	case Duration:
		d, ok := ParseDuration(raw)
		return d, ok && o.allows(int64(d))
	case List:
		return parseList(raw)
	case Map:
		return parseMap(raw)
	}
	panic("driver: option " + o.Name + " has an unknown type")
}

// scalar returns a string, a boolean, a number or a duration as text.
func scalar(raw any) (text string, ok bool) {
	switch raw.(type) {
	case string, bool, int, int64, float64, time.Duration:
		return Text(raw), true
	}
	return "", false
}

// wants describes the values of each type in errors.
var wants = [...]string{
	String: "a string", Int: "an integer", Bool: "true or false",
	Duration: `a duration such as "500ms" or a number of milliseconds`, Size: `a size such as 65536 or "64KiB"`,
	Enum: "one of ", List: "a list of strings",
	Map:  "an object of strings, numbers and booleans, or a string name=value or a list of these",
	File: "the path of a file, or its text",
}

func (o Option) want() string {
	text := wants[o.Type]
	show := func(n int64) any {
		if o.Type == Duration {
			return time.Duration(n)
		}
		return n
	}
	switch o.Type {
	case Enum:
		return text + strings.Join(o.Allowed, ", ")
	case Int, Size, Duration:
		text += fmt.Sprint(", at least ", show(o.Min))
	}
	if o.Max != 0 {
		text += fmt.Sprint(", at most ", show(o.Max))
	}
	if o.Step != 0 {
		text += fmt.Sprint(", in steps of ", show(o.Step))
	}
	return text
}

func (o Option) allows(n int64) bool {
	return n >= o.Min && (o.Max == 0 || n <= o.Max) && (o.Step == 0 || n%o.Step == 0)
}

// Show returns a value of a URL or a script as errors quote it. Lists and objects are not quoted.
func Show(raw any) string {
	switch v := raw.(type) {
	case string:
		return strconv.Quote(v)
	case nil:
		return "nothing"
	case []any, []string:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprint(raw)
}

// units are the suffixes of sizes.
var units = map[string]int64{
	"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

func parseSize(text string) (int64, bool) {
	number := strings.TrimRightFunc(text, unicode.IsLetter)
	unit, known := units[text[len(number):]]
	n, err := strconv.ParseInt(cmp.Or(number, "0"), 10, 64)
	return n * unit, err == nil && known && n*unit/unit == n
}

// ParseDuration parses a duration as k6 does: a string in Go's form, or a number of milliseconds.
func ParseDuration(raw any) (time.Duration, bool) {
	text, ok := scalar(raw)
	ms, err := strconv.ParseFloat(cmp.Or(text, "0"), 64)
	if err != nil {
		d, err := time.ParseDuration(text)
		return d, ok && err == nil
	}
	ns := ms * float64(time.Millisecond)
	return time.Duration(ns), ok && math.Abs(ns) < math.MaxInt64
}

func parseList(raw any) ([]string, bool) {
	switch v := raw.(type) {
	case []string:
		return v, true
	case string:
		if v == "" {
			return nil, true
		}
		return strings.Split(v, ","), true
	case []any:
		list := make([]string, 0, len(v))
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, false
			}
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}

// parseMap parses an object, or name=value: one string or a list. A comma is part of a value.
func parseMap(raw any) (map[string]any, bool) {
	if object, ok := raw.(map[string]any); ok {
		for name, value := range object {
			if _, ok := scalar(value); name == "" || !ok {
				return nil, false
			}
		}
		return object, true
	}
	if text, ok := raw.(string); ok && text != "" {
		raw = []string{text}
	}
	list, ok := parseList(raw)
	m := make(map[string]any, len(list))
	for _, item := range list {
		name, value, found := strings.Cut(item, "=")
		if _, twice := m[name]; !found || name == "" || twice {
			return nil, false
		}
		m[name] = value
	}
	return m, ok
}

// Text returns a scalar, such as a value of a [Map], as text.
func Text(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
