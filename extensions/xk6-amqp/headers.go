package amqp

import (
	"cmp"
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxShort is the length in bytes of the longest AMQP short string: names, routing keys.
const maxShort = 255

// short refuses names that are longer: the client library would give up the whole connection over one.
func short(names ...string) error {
	for _, name := range names {
		if len(name) > maxShort {
			return rejectedError(fmt.Sprintf("names of queues, exchanges and routing keys have at most %d bytes, and %.40q... has %d", maxShort, name, len(name)))
		}
	}
	return nil
}

// Headers of the broker's own that are no part of the message.
const (
	deliveryCount = "x-delivery-count"
	streamOffset  = "x-stream-offset"
)

// fill turns headers into an AMQP table, which it reuses. The values are long strings, which hold any byte and which every
// client and the headers exchange understand; typed are those that are numbers or booleans. A frame's size in bytes is the limit.
func fill(table amqp.Table, headers []driver.Header, typed map[string]any, frame int) (amqp.Table, error) {
	if len(headers) == 0 && len(typed) == 0 {
		return nil, nil // no table at all is what a message without headers has
	}
	clear(table)
	size := 0
	for _, h := range headers {
		if len(h.Name) > maxShort {
			return nil, rejectedError(fmt.Sprintf("header \"%.40s...\": its name has %d bytes, and at most %d are allowed", h.Name, len(h.Name), maxShort))
		}
		size += len(h.Name) + len(h.Value) + 6
		table[h.Name] = string(h.Value)
	}
	for name, value := range typed {
		if _, twice := table[name]; twice || len(name) > maxShort {
			return nil, &driver.OptionError{Name: "typedHeaders", Err: fmt.Errorf("\"%.40s\" is in headers, too, or its name has more than %d bytes", name, maxShort)}
		}
		size += len(name) + len(driver.Text(value)) + 16
		table[name] = value
	}
	if size > frame-512 { // what else the frame holds are the properties
		return nil, rejectedError(fmt.Sprintf("headers of %d bytes do not fit into a frame of %d", size, frame))
	}
	return table, nil
}

// headersOf gives the scalar headers of a message by name, the order of the wire being lost in the client library.
func headersOf(table amqp.Table) []driver.Header {
	if len(table) == 0 {
		return nil
	}
	headers := make([]driver.Header, 0, len(table))
	for name, value := range table {
		if name == deliveryCount || name == streamOffset {
			continue
		}
		switch v := value.(type) {
		case string:
			headers = append(headers, driver.Header{Name: name, Value: []byte(v)})
		case []byte:
			headers = append(headers, driver.Header{Name: name, Value: v})
		case bool, int8, uint8, int16, uint16, int32, uint32, int64, int, float32, float64:
			headers = append(headers, driver.Header{Name: name, Value: fmt.Append(nil, v)})
		}
	}
	if len(headers) > 1 {
		slices.SortFunc(headers, func(a, b driver.Header) int { return cmp.Compare(a.Name, b.Name) })
	}
	return headers
}

// integer reads a header that the broker set.
func integer(table amqp.Table, name string) (int64, bool) {
	switch v := table[name].(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int:
		return int64(v), true
	}
	return 0, false
}
