package k6

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
)

// messages reads the argument of send: one message, or an array of at most most. A message is an
// object with body, key and headers, or only a body.
func (c *connection) messages(v sobek.Value, most int) (batch driver.Batch, single bool, err error) {
	if !isArray(v) {
		batch = make(driver.Batch, 1)
		batch[0], err = c.message(v)
		return batch, true, err
	}
	array := v.ToObject(c.in.vu.Runtime())
	n := array.Get("length").ToInteger()
	if n == 0 {
		return nil, false, errors.New("the array of messages is empty")
	}
	if n > int64(most) {
		return nil, false, fmt.Errorf(
			"an array of %d messages: send at most %d at once, or raise the producer's option \"maxInFlight\"", n, most,
		)
	}
	batch = make(driver.Batch, n)
	for i := range batch {
		if batch[i], err = c.message(array.Get(strconv.Itoa(i))); err != nil {
			return nil, false, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return batch, false, nil
}

func isArray(v sobek.Value) bool {
	o, ok := v.(*sobek.Object)
	return ok && o.ClassName() == "Array"
}

func (c *connection) message(v sobek.Value) (m driver.Message, err error) {
	o, ok := v.(*sobek.Object)
	if !ok {
		m.Body, err = c.in.bytesOf(v)
		return m, err
	}
	body := o.Get("body")
	if body == nil {
		b, ok, err := c.in.bytesIn(o)
		if err == nil && !ok {
			err = errors.New(`a message is an object with "body" and, where needed, "key" and "headers", or only its body: ` +
				"a string, an ArrayBuffer, a typed array or a DataView")
		}
		m.Body = b
		return m, err
	}
	if sobek.IsNull(body) {
		if !c.address.Driver.Features.Tombstones {
			return m, fmt.Errorf(
				"body: null: %s has no messages without a body (conn.features.tombstones is false)",
				c.address.Driver.Name,
			)
		}
	} else if m.Body, err = c.in.bytesOf(body); err != nil {
		return m, fmt.Errorf("body: %w", err)
	}
	if key := o.Get("key"); given(key) { // a driver without keys ignores it
		if m.Key, err = c.in.bytesOf(key); err != nil {
			return m, fmt.Errorf("key: %w", err)
		}
	}
	if headers := o.Get("headers"); given(headers) {
		if m.Headers, err = c.headers(headers); err != nil {
			return m, err
		}
	}
	if properties := o.Get("properties"); given(properties) {
		m.Properties, err = c.properties(properties)
	}
	return m, err
}

// properties reads an object of the driver's options of messages.
func (c *connection) properties(v sobek.Value) (driver.Values, error) {
	given, ok := v.Export().(map[string]any)
	if !ok {
		return nil, errors.New("properties: an object of names and values is needed")
	}
	return c.address.Driver.Properties(given)
}

// headers reads an object of names and values.
func (c *connection) headers(v sobek.Value) ([]driver.Header, error) {
	if !c.address.Driver.Features.Headers {
		return nil, fmt.Errorf("headers: %s keeps none", c.address.Driver.Name)
	}
	o, ok := v.(*sobek.Object)
	if !ok || !hasNames(o) {
		return nil, errors.New("headers: an object of names and values is needed")
	}
	names := o.Keys()
	headers := make([]driver.Header, len(names))
	for i, name := range names {
		if strings.EqualFold(name, engine.StampHeader) {
			return nil, fmt.Errorf("header %q: the producer adds the trace stamp under this name: choose another", name)
		}
		value, err := c.in.bytesOf(o.Get(name))
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", name, err)
		}
		headers[i] = driver.Header{Name: name, Value: value}
	}
	return headers, nil
}

// message is the script's object for a received message. Its properties are decoded when they are
// read.
type message struct {
	readOnly

	rt    *sobek.Runtime
	parse sobek.Callable
	by    *consumer // its receiver; nil for the reply to a request
	in    *engine.Buffer
	i     int
}

func (in *instance) newMessage(by *consumer, buffer *engine.Buffer, i int) *sobek.Object {
	rt := in.vu.Runtime()
	return rt.NewDynamicObject(&message{rt: rt, parse: in.parse, by: by, in: buffer, i: i})
}

var messageKeys = []string{
	"topic", "key", "headers", "properties", "body", "attempt", "partition", "position", "timestamp", "text", "json",
	"latency",
}

func (m *message) Get(name string) sobek.Value {
	msg := &m.in.Messages[m.i]
	switch name {
	case "topic":
		return m.rt.ToValue(msg.Topic)
	case "key":
		if msg.Key == nil {
			return sobek.Null()
		}
		return m.textOrBytes(msg.Key)
	case "headers":
		headers := m.rt.NewObject()
		for _, h := range msg.Headers {
			if h.Name != engine.StampHeader { // a damaged stamp stays in the message
				_ = headers.Set(h.Name, m.textOrBytes(h.Value)) // a new object takes any property
			}
		}
		return headers
	case "properties":
		properties := m.rt.NewObject()
		for name, value := range msg.Properties {
			if d, ok := value.(time.Duration); ok {
				value = ms(int64(d))
			}
			_ = properties.Set(name, value)
		}
		return properties
	case "body":
		if msg.Body == nil && m.by != nil && m.by.conn.address.Driver.Features.Tombstones {
			return sobek.Null()
		}
		return m.rt.ToValue(m.rt.NewArrayBuffer(msg.Body))
	case "attempt":
		return m.rt.ToValue(msg.Attempt)
	case "partition":
		if m.by != nil && m.by.conn.address.Driver.Features.Partitions {
			return m.rt.ToValue(msg.Partition)
		}
	case "position":
		return positionOf(m.rt, m.place().Position)
	case "timestamp":
		if at := m.place().Timestamp; at != 0 {
			return m.rt.ToValue(ms(at))
		}
	case "text":
		return m.rt.ToValue(func() string { return string(msg.Body) })
	case "json":
		return m.rt.ToValue(m.json)
	case "latency":
		if !m.in.Stamped[m.i] {
			return sobek.Null()
		}
		return m.rt.ToValue(ms(m.in.HandedAt - m.in.Stamps[m.i].Due))
	}
	return nil
}

// place returns the place of the message at the broker; zero if it is unknown.
func (m *message) place() driver.Place {
	if m.by == nil || m.by.conn.address.Driver.Place == nil {
		return driver.Place{}
	}
	return m.by.conn.address.Driver.Place(&m.in.Messages[m.i])
}

// positionOf returns a number for an offset, a string for an identifier, and nil for none.
func positionOf(rt *sobek.Runtime, p driver.Position) sobek.Value {
	switch p.Form {
	case driver.Offset:
		return rt.ToValue(p.Number)
	case driver.Identifier:
		return rt.ToValue(p.String())
	default:
		return nil
	}
}

// textOrBytes returns valid UTF-8 as a string, which keeps the bytes, and anything else as an
// ArrayBuffer.
func (m *message) textOrBytes(b []byte) sobek.Value {
	if utf8.Valid(b) {
		return m.rt.ToValue(string(b))
	}
	return m.rt.ToValue(m.rt.NewArrayBuffer(b))
}

func (m *message) json() (sobek.Value, error) {
	return m.parse(sobek.Undefined(), m.rt.ToValue(string(m.in.Messages[m.i].Body)))
}

func (m *message) Has(name string) bool { return m.Get(name) != nil }

func (m *message) Keys() []string { return messageKeys }
