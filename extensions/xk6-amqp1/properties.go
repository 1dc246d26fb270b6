package amqp1

import (
	"fmt"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// usual is the default priority.
const usual = 4

// properties are the properties of a message in AMQP.
type properties struct {
	persistent                                                        bool
	priority                                                          uint8
	ttl, delay                                                        time.Duration
	id, correlation, subject, contentType, contentEncoding, groupName string
	headers                                                           map[string]any // typedHeaders
}

// texts returns the properties that are text, by the names of their options.
func (p *properties) texts() map[string]*string {
	return map[string]*string{
		"messageId": &p.id, "correlationId": &p.correlation, "subject": &p.subject,
		"contentType": &p.contentType, "contentEncoding": &p.contentEncoding, "groupId": &p.groupName,
	}
}

// with returns the properties with those set in v replaced.
func (p properties) with(v driver.Values) properties {
	for name, to := range p.texts() {
		if s, ok := v[name].(string); ok {
			*to = s
		}
	}
	if headers, ok := v["typedHeaders"].(map[string]any); ok {
		p.headers = headers
	}
	if b, ok := v["persistent"].(bool); ok {
		p.persistent = b
	}
	if n, ok := v["priority"].(int64); ok {
		p.priority = uint8(n) //gosec:disable G115 -- the option has limits
	}
	if d, ok := v["ttl"].(time.Duration); ok {
		p.ttl = d
	}
	if d, ok := v["delay"].(time.Duration); ok {
		p.delay = d
	}
	return p
}

// header is the section for the broker.
func (p *properties) header() amqp.MessageHeader {
	return amqp.MessageHeader{Durable: p.persistent, Priority: p.priority, TTL: p.ttl}
}

// annotations has the delay, once for Artemis and once for Azure Service Bus.
func (p *properties) annotations() amqp.Annotations {
	if p.delay == 0 {
		return nil
	}
	return amqp.Annotations{annotationDelay: p.delay.Milliseconds(), annotationTime: time.Now().Add(p.delay)}
}

// section is the section for the application; nil for most messages.
func (p *properties) section() *amqp.MessageProperties {
	if p.id+p.correlation+p.subject+p.contentType+p.contentEncoding+p.groupName == "" {
		return nil
	}
	s := &amqp.MessageProperties{
		Subject: given(p.subject), ContentType: given(p.contentType),
		ContentEncoding: given(p.contentEncoding), GroupID: given(p.groupName),
	}
	if p.id != "" {
		s.MessageID = p.id
	}
	if p.correlation != "" {
		s.CorrelationID = p.correlation
	}
	return s
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// propertiesOf returns the properties of a received message.
func propertiesOf(m *amqp.Message) driver.Values {
	var v driver.Values
	set := func(name string, value any) {
		if v == nil {
			v = driver.Values{}
		}
		v[name] = value
	}
	if h := m.Header; h != nil {
		if h.Priority != usual {
			set("priority", int64(h.Priority))
		}
		if h.TTL > 0 {
			set("ttl", h.TTL)
		}
	}
	s := m.Properties
	if s == nil {
		return v
	}
	for name, value := range map[string]any{"messageId": s.MessageID, "correlationId": s.CorrelationID} {
		if value != nil {
			set(name, fmt.Sprint(value))
		}
	}
	for name, value := range map[string]*string{
		"subject": s.Subject, "contentType": s.ContentType, "contentEncoding": s.ContentEncoding, "groupId": s.GroupID,
	} {
		if value != nil && *value != "" {
			set(name, *value)
		}
	}
	return v
}
