package amqp

import (
	"cmp"
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxShort is the greatest length of an AMQP short string (names, routing keys) in bytes.
const maxShort = 255

// short refuses longer names: the client library would close the connection.
func short(names ...string) error {
	for _, name := range names {
		if len(name) > maxShort {
			return tooLong(name)
		}
	}
	return nil
}

func tooLong(name string) error {
	return rejectedError(fmt.Sprintf("names and routing keys have at most %d bytes, %.40q... has %d",
		maxShort, name, len(name)))
}

// Headers set by the broker.
const (
	deliveryCount = "x-delivery-count"
	streamOffset  = "x-stream-offset"
)

// fill converts headers to an AMQP table, which it reuses. headers become long strings, which hold
// any byte; typed are numbers and booleans. frame is the limit in bytes.
func fill(table amqp.Table, headers []driver.Header, typed map[string]any, frame int) (amqp.Table, error) {
	if len(headers) == 0 && len(typed) == 0 {
		return nil, nil // a message without headers has no table
	}
	clear(table)
	size := 0
	for _, h := range headers {
		if len(h.Name) > maxShort {
			return nil, tooLong(h.Name)
		}
		size += len(h.Name) + len(h.Value) + 6
		table[h.Name] = string(h.Value)
	}
	for name, value := range typed {
		if len(name) > maxShort {
			return nil, tooLong(name)
		}
		if _, twice := table[name]; twice {
			return nil, &driver.OptionError{Name: "typedHeaders", Err: fmt.Errorf("%q is in headers too", name)}
		}
		size += len(name) + len(driver.Text(value)) + 16
		table[name] = value
	}
	if size > frame-512 { // the frame holds the properties too
		return nil, rejectedError(fmt.Sprintf("headers of %d bytes do not fit into a frame of %d", size, frame))
	}
	return table, nil
}

// headersOf returns the scalar headers sorted by name: the client library loses the order.
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

// integer returns a header set by the broker.
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
