package amqp1

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Annotations of a message: Azure's names for its key and its time of delivery, and Artemis's for
// the delay.
const (
	annotationKey   = "x-opt-partition-key"
	annotationDelay = "x-opt-delivery-delay"
	annotationTime  = "x-opt-scheduled-enqueue-time"
)

// envelope is the client library's form of a message. A producer reuses one, because the library
// keeps no reference.
type envelope struct {
	amqp.Message
	header amqp.MessageHeader
	data   [1][]byte
}

// fill converts a message.
func (e *envelope) fill(m *driver.Message, own properties) error {
	if m.Properties != nil {
		own = own.with(m.Properties)
	}
	e.header, e.data[0] = own.header(), m.Body
	e.Message = amqp.Message{
		Header: &e.header, Properties: own.section(), Annotations: own.annotations(), Data: e.data[:],
	}
	if len(m.Key) > 0 {
		if e.Annotations == nil {
			e.Annotations = amqp.Annotations{}
		}
		e.Annotations[annotationKey] = textOrBytes(m.Key)
	}
	if len(m.Headers) == 0 && len(own.headers) == 0 {
		return nil
	}
	e.ApplicationProperties = make(map[string]any, len(m.Headers)+len(own.headers))
	for _, h := range m.Headers {
		if !utf8.ValidString(h.Name) {
			return &driver.OptionError{Name: "headers", Err: fmt.Errorf("the name %q is not UTF-8", h.Name)}
		}
		e.ApplicationProperties[h.Name] = textOrBytes(h.Value)
	}
	for name, value := range own.headers {
		if _, twice := e.ApplicationProperties[name]; twice {
			return &driver.OptionError{Name: "typedHeaders", Err: fmt.Errorf("%q is in headers, too", name)}
		}
		e.ApplicationProperties[name] = value
	}
	return nil
}

// textOrBytes returns a string, which every broker and client understands, if b is UTF-8.
func textOrBytes(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return bytes.Clone(b)
}

// received converts a received message.
func (d *delivery) received(topic string) driver.Message {
	m := d.message
	to := driver.Message{
		Body: bodyOf(m), Headers: headersOf(m.ApplicationProperties), Properties: propertiesOf(m),
		Topic: topic, Received: d.at, Attempt: 1, Token: d,
	}
	if h := m.Header; h != nil {
		to.Attempt += int32(h.DeliveryCount) //gosec:disable G115 -- a count, far below the limit
		if h.DeliveryCount == 0 && !h.FirstAcquirer && d.intake.on.rabbitmq() {
			to.Attempt = 2 // a classic queue does not count deliveries
		}
	}
	if key, ok := m.Annotations[annotationKey]; ok {
		to.Key = scalar(key)
	}
	return to
}

// bodyOf joins the parts of a body of bytes, or converts a value to text.
func bodyOf(m *amqp.Message) []byte {
	switch {
	case len(m.Data) == 1:
		return m.Data[0]
	case len(m.Data) > 1:
		return bytes.Join(m.Data, nil)
	case m.Value != nil:
		return scalar(m.Value)
	}
	return nil
}

// headersOf returns the application properties sorted by name: the client library loses the order.
func headersOf(from map[string]any) []driver.Header {
	if len(from) == 0 {
		return nil
	}
	headers := make([]driver.Header, 0, len(from))
	for name, value := range from {
		headers = append(headers, driver.Header{Name: name, Value: scalar(value)})
	}
	slices.SortFunc(headers, func(a, b driver.Header) int { return cmp.Compare(a.Name, b.Name) })
	return headers
}

// scalar converts a value of AMQP to bytes.
func scalar(value any) []byte {
	switch v := value.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	case nil:
		return nil
	}
	return fmt.Append(nil, value)
}
