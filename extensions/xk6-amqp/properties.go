package amqp

import (
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// properties are the properties of a message in AMQP.
type properties struct {
	priority                                                         uint8
	expiration, contentType, contentEncoding, correlation, kind, app string
	headers                                                          map[string]any // typedHeaders
}

// with returns the properties with those set in v replaced.
func (p properties) with(v driver.Values) properties {
	text := func(name string, to *string) {
		if s, ok := v[name].(string); ok {
			*to = s
		}
	}
	text("contentType", &p.contentType)
	text("contentEncoding", &p.contentEncoding)
	text("correlationId", &p.correlation)
	text("type", &p.kind)
	text("appId", &p.app)
	if headers, ok := v["typedHeaders"].(map[string]any); ok {
		p.headers = headers
	}
	if n, ok := v["priority"].(int64); ok {
		p.priority = uint8(n) //gosec:disable G115 -- the option has limits
	}
	if d, ok := v["expiration"].(time.Duration); ok {
		p.expiration = ""
		if d > 0 {
			p.expiration = strconv.FormatInt(d.Milliseconds(), 10)
		}
	}
	return p
}

// apply sets the properties of a message.
func (p *properties) apply(to *amqp.Publishing) {
	to.Priority, to.Expiration = p.priority, p.expiration
	to.ContentType, to.ContentEncoding = p.contentType, p.contentEncoding
	to.Type, to.AppId = p.kind, p.app
	if to.CorrelationId == "" {
		to.CorrelationId = p.correlation
	}
}

// propertiesOf returns the properties of a delivery, nil for most messages. The correlation id of a
// request is not one of them.
func propertiesOf(d *amqp.Delivery) (v driver.Values) {
	set := func(name string, value any) {
		if v == nil {
			v = driver.Values{}
		}
		v[name] = value
	}
	text := func(name, value string) {
		if value != "" {
			set(name, value)
		}
	}
	text("contentType", d.ContentType)
	text("contentEncoding", d.ContentEncoding)
	text("type", d.Type)
	text("appId", d.AppId)
	if d.ReplyTo == "" {
		text("correlationId", d.CorrelationId)
	}
	if d.Priority > 0 {
		set("priority", int64(d.Priority))
	}
	if d.Expiration == "" {
		return v
	}
	if ms, err := strconv.ParseInt(d.Expiration, 10, 64); err == nil {
		set("expiration", time.Duration(ms)*time.Millisecond)
	}
	return v
}
