package js

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// messages turns what a script sends into a batch: one message or an array of them, each an object with body, key and
// headers, or only a body.
func (c *connection) messages(v sobek.Value) (batch driver.Batch, single bool, err error) {
	rt := c.in.vu.Runtime()
	if !isArray(v) {
		m, err := c.message(v)
		return driver.Batch{m}, true, err
	}
	array := v.ToObject(rt)
	n := int(array.Get("length").ToInteger())
	if n == 0 {
		return nil, false, errors.New("the array of messages is empty")
	}
	batch = make(driver.Batch, n)
	for i := range batch {
		if batch[i], err = c.message(array.Get(fmt.Sprint(i))); err != nil {
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
	rt := c.in.vu.Runtime()
	o, ok := v.(*sobek.Object)
	if !ok {
		m.Body, err = bytesOf(v)
		return m, err
	}
	body := o.Get("body")
	if body == nil {
		if b, ok := bytesIn(o); ok {
			m.Body = append([]byte{}, b...)
			return m, nil
		}
		return m, errors.New(`a message is an object with "body" and, where needed, "key" and "headers"`)
	}
	if m.Body, err = bytesOf(body); err != nil {
		return m, fmt.Errorf("body: %w", err)
	}
	if c.address.Driver.Features.Key {
		if key := o.Get("key"); given(key) {
			if m.Key, err = bytesOf(key); err != nil {
				return m, fmt.Errorf("key: %w", err)
			}
		}
	}
	headers := o.Get("headers")
	if !given(headers) {
		return m, nil
	}
	if !c.address.Driver.Features.Headers {
		return m, fmt.Errorf("headers: %s keeps none", c.address.Driver.Name)
	}
	ho := headers.ToObject(rt)
	for _, name := range ho.Keys() {
		value, err := bytesOf(ho.Get(name))
		if err != nil {
			return m, fmt.Errorf("header %q: %w", name, err)
		}
		m.Headers = append(m.Headers, driver.Header{Name: name, Value: value})
	}
	return m, nil
}

func given(v sobek.Value) bool { return v != nil && !sobek.IsUndefined(v) && !sobek.IsNull(v) }

// bytesIn gives the bytes of an ArrayBuffer or a typed array, which remain the script's.
func bytesIn(o *sobek.Object) ([]byte, bool) {
	if ab, ok := arrayBuffer(o); ok {
		return ab.Bytes(), true
	}
	ab, ok := arrayBuffer(o.Get("buffer"))
	if !ok {
		return nil, false
	}
	from := o.Get("byteOffset").ToInteger()
	return ab.Bytes()[from : from+o.Get("byteLength").ToInteger()], true
}

var arrayBufferType = reflect.TypeFor[sobek.ArrayBuffer]() //nolint:gochecknoglobals // a constant

// arrayBuffer asks for the type first: to export another object would copy all that it holds.
func arrayBuffer(v sobek.Value) (ab sobek.ArrayBuffer, ok bool) {
	if v == nil || v.ExportType() != arrayBufferType {
		return ab, false
	}
	ab, ok = v.Export().(sobek.ArrayBuffer)
	return ab, ok
}

// bytesOf copies a string, an ArrayBuffer, a typed array or, as JSON, any other value. The copy is the message's: the script
// may change its own at once.
func bytesOf(v sobek.Value) ([]byte, error) {
	if !given(v) {
		return nil, errors.New("it is missing: a string, an object, an ArrayBuffer or a typed array is needed")
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return []byte(v.String()), nil
	}
	if b, ok := bytesIn(o); ok {
		return append([]byte{}, b...), nil
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return text, nil
}

// message is a received message in a script: nothing is decoded until it is asked for.
type message struct {
	rt *sobek.Runtime
	in *load.Inbox
	i  int
}

func newMessage(rt *sobek.Runtime, in *load.Inbox, i int) *sobek.Object {
	return rt.NewDynamicObject(&message{rt: rt, in: in, i: i})
}

var messageKeys = []string{"topic", "key", "headers", "body", "attempt", "partition", "text", "json", "latency"} //nolint:gochecknoglobals // a table

func (m *message) Get(name string) sobek.Value {
	msg := &m.in.Messages[m.i]
	switch name {
	case "topic":
		return m.rt.ToValue(msg.Topic)
	case "key":
		if msg.Key == nil {
			return sobek.Null()
		}
		return m.rt.ToValue(string(msg.Key))
	case "headers":
		headers := m.rt.NewObject()
		for _, h := range msg.Headers {
			_ = headers.Set(h.Name, string(h.Value)) // a fresh object takes any property
		}
		return headers
	case "body":
		return m.rt.ToValue(m.rt.NewArrayBuffer(msg.Body))
	case "attempt":
		return m.rt.ToValue(msg.Attempt)
	case "partition":
		return m.rt.ToValue(msg.Partition)
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

func (m *message) json() sobek.Value {
	json := m.rt.GlobalObject().Get("JSON").ToObject(m.rt)
	parse, _ := sobek.AssertFunction(json.Get("parse"))
	v, err := parse(json, m.rt.ToValue(string(m.in.Messages[m.i].Body)))
	if err != nil {
		common.Throw(m.rt, err)
	}
	return v
}

func (m *message) Set(string, sobek.Value) bool { return false }

func (m *message) Has(name string) bool { return m.Get(name) != nil }

func (m *message) Delete(string) bool { return false }

func (m *message) Keys() []string { return messageKeys }
