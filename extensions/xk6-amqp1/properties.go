package amqp1

import (
	"fmt"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// usual is the priority of a message that says none.
const usual = 4

// properties are those of AMQP that a message may have.
type properties struct {
	persistent                                                        bool
	priority                                                          uint8
	ttl, delay                                                        time.Duration
	id, correlation, subject, contentType, contentEncoding, groupName string
	headers                                                           map[string]any // typedHeaders
}

// texts are the properties that are text, by the names of their options.
func (p *properties) texts() map[string]*string {
	return map[string]*string{
		"messageId": &p.id, "correlationId": &p.correlation, "subject": &p.subject,
		"contentType": &p.contentType, "contentEncoding": &p.contentEncoding, "groupId": &p.groupName,
	}
}

// with is what holds for a message: of what it does not say, what holds for all.
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

// header is the section that the broker goes by.
func (p *properties) header() amqp.MessageHeader {
	return amqp.MessageHeader{Durable: p.persistent, Priority: p.priority, TTL: p.ttl}
}

// annotations are those by which the broker keeps a message back. Of two that say the same each broker knows one.
func (p *properties) annotations() amqp.Annotations {
	if p.delay == 0 {
		return nil
	}
	return amqp.Annotations{annotationDelay: p.delay.Milliseconds(), annotationTime: time.Now().Add(p.delay)}
}

// section is that of the application; nil where it would be empty, as of most messages.
func (p *properties) section() *amqp.MessageProperties {
	if p.id == "" && p.correlation == "" && p.subject == "" && p.contentType == "" && p.contentEncoding == "" && p.groupName == "" {
		return nil
	}
	s := &amqp.MessageProperties{Subject: given(p.subject), ContentType: given(p.contentType), ContentEncoding: given(p.contentEncoding), GroupID: given(p.groupName)}
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

// propertiesOf are those of a message that came.
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
		if value != nil && s.ReplyTo == nil { // else they tell who waits for a reply
			set(name, fmt.Sprint(value))
		}
	}
	for name, value := range map[string]*string{"subject": s.Subject, "contentType": s.ContentType, "contentEncoding": s.ContentEncoding, "groupId": s.GroupID} {
		if value != nil && *value != "" {
			set(name, *value)
		}
	}
	return v
}
