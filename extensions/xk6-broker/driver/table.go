package driver

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Pairs are the entries of a [Map] as name=value, sorted by name.
func Pairs(m map[string]any) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+"="+Text(m[name]))
	}
	return all
}

// Text is a value of a [Map] as text.
func Text(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// parseMap reads an object, or name=value: one string, or a list of such. A comma is part of a
// value.
func parseMap(raw any) (map[string]any, bool) {
	if text, isText := raw.(string); isText {
		if text == "" {
			return nil, true
		}
		raw = []string{text}
	}
	if object, ok := raw.(map[string]any); ok {
		return scalars(object)
	}
	list, ok := parseList(raw)
	m := make(map[string]any, len(list))
	for _, item := range list {
		name, value, named := strings.Cut(item, "=")
		if _, twice := m[name]; !named || name == "" || twice {
			return nil, false
		}
		m[name] = value
	}
	return m, ok
}

// scalars are an object's strings, booleans, int64 and float64; false where it holds anything else.
func scalars(object map[string]any) (map[string]any, bool) {
	m := make(map[string]any, len(object))
	for name, value := range object {
		switch v := value.(type) {
		case string, bool, int64:
			m[name] = v
		case float64:
			m[name] = v
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, false
			}
			if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
				m[name] = int64(v)
			}
		default:
			return nil, false
		}
		if name == "" {
			return nil, false
		}
	}
	return m, true
}

// parseItems reads a list of strings and objects.
func parseItems(raw any) ([]any, bool) {
	list, isList := raw.([]any)
	if !isList {
		texts, ok := parseList(raw)
		for _, text := range texts {
			list = append(list, text)
		}
		return list, ok
	}
	items := make([]any, len(list))
	for i, item := range list {
		object, isObject := item.(map[string]any)
		if _, isText := item.(string); !isObject && !isText {
			return nil, false
		}
		items[i] = item
		if isObject {
			copied := make(map[string]any, len(object))
			for name, value := range object {
				inner, nested := value.(map[string]any)
				if !nested {
					inner = map[string]any{name: value}
				}
				inner, ok := scalars(inner)
				if !ok {
					return nil, false
				}
				copied[name] = inner
				if !nested {
					copied[name] = inner[name]
				}
			}
			items[i] = copied
		}
	}
	return items, true
}
