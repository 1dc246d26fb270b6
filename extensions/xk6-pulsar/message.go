package pulsar

import (
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// empty is the property of a message that has neither a body nor a property: the client takes one without for corrupt when it comes, and drops it.
const empty = "xk6-broker-empty"

// properties are a message's headers. Of equal names the last one counts.
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

// headers are a message's properties, by name: the client does not keep their order.
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

// propertiesOf are those of the driver's options that come with a message.
func propertiesOf(d *delivery) driver.Values {
	if ms := d.EventTime().UnixMilli(); ms > 0 {
		return driver.Values{"eventTime": ms}
	}
	return nil
}
