package pulsar

import (
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// empty is the property of a message without body and properties, which the client would drop as
// corrupt.
const empty = "xk6-broker-empty"

// properties converts a message's headers. The last of equal names counts.
func properties(m *driver.Message) map[string]string {
	switch {
	case len(m.Headers) > 0:
		all := make(map[string]string, len(m.Headers))
		for _, h := range m.Headers {
			all[h.Name] = string(h.Value)
		}
		return all
	case len(m.Body) == 0:
		return map[string]string{empty: "true"}
	}
	return nil
}

// headers converts a message's properties, sorted by name.
func headers(properties map[string]string) []driver.Header {
	if len(properties) == 0 {
		return nil
	}
	all := make([]driver.Header, 0, len(properties))
	for name, value := range properties {
		if name == empty {
			continue
		}
		all = append(all, driver.Header{Name: name, Value: []byte(value)})
	}
	slices.SortFunc(all, func(a, b driver.Header) int { return strings.Compare(a.Name, b.Name) })
	return all
}
