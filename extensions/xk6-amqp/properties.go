package amqp

import (
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// properties are those of AMQP that a message may have.
type properties struct {
	priority                                                         uint8
	expiration, contentType, contentEncoding, correlation, kind, app string
	headers                                                          map[string]any // typedHeaders
}

// with is what holds for a message: of what it does not say, what holds for all.
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

// on gives a message its properties.
func (p *properties) on(to *amqp.Publishing) {
	to.Priority, to.Expiration, to.ContentType, to.ContentEncoding = p.priority, p.expiration, p.contentType, p.contentEncoding
	to.Type, to.AppId = p.kind, p.app
	if to.CorrelationId == "" {
		to.CorrelationId = p.correlation
	}
}

// propertiesOf are those of a delivery, without what tells who waits for a reply.
func propertiesOf(d *amqp.Delivery) driver.Values {
	if d.Priority == 0 && d.Expiration == "" && d.ContentType == "" && d.ContentEncoding == "" && d.CorrelationId == "" && d.Type == "" && d.AppId == "" {
		return nil // as of most messages
	}
	v := driver.Values{}
	text := func(name, value string) {
		if value != "" {
			v[name] = value
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
		v["priority"] = int64(d.Priority)
	}
	if ms, err := strconv.ParseInt(d.Expiration, 10, 64); err == nil {
		v["expiration"] = time.Duration(ms) * time.Millisecond
	}
	return v
}
