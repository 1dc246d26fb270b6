package postgres

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// encodeHeaders returns headers as a JSON object; nil if there are none. Text that jsonb cannot
// store is an error.
func encodeHeaders(all []driver.Header) (*string, error) {
	if len(all) == 0 {
		return nil, nil // no headers are no error
	}
	object := make(map[string]string, len(all))
	for _, h := range all {
		value := string(h.Value)
		switch _, twice := object[h.Name]; {
		case twice:
			return nil, &driver.OptionError{
				Name: "headers",
				Err:  fmt.Errorf("%q is given twice, and a jsonb object has each name once", h.Name),
			}
		case !text(h.Name), !text(value):
			return nil, &driver.OptionError{
				Name: "headers",
				Err:  fmt.Errorf("%q or its value is not text in UTF-8 without a zero, which is all that jsonb holds", h.Name),
			}
		}
		object[h.Name] = value
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	s := string(encoded)
	return &s, nil
}

func text(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// decodeHeaders returns headers by name. Values of other programs that are not strings arrive as
// JSON.
func decodeHeaders(column []byte) []driver.Header {
	if column == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(column, &object) != nil {
		return []driver.Header{{Name: "headers", Value: column}} // no object
	}
	all := make([]driver.Header, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := []byte(object[name])
		var s string
		if json.Unmarshal(value, &s) == nil {
			value = []byte(s)
		}
		all = append(all, driver.Header{Name: name, Value: value})
	}
	return all
}
