package amqp1

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// product is what a server says it is.
type product struct{ name, version string }

func productOf(properties map[string]any) product {
	name, _ := properties["product"].(string)
	version, _ := properties["version"].(string)
	return product{name, version}
}

func (p product) String() string {
	if p.name == "" {
		return "a server of AMQP 1.0 that does not say what it is"
	}
	return strings.TrimSpace(p.name + " " + p.version)
}

func (p product) artemis() bool  { return strings.Contains(strings.ToLower(p.name), "artemis") }
func (p product) rabbitmq() bool { return p.name == "RabbitMQ" }

// speaks is an error where this driver's way to address topics is unknown to the server, and no other is given.
func (p product) speaks(template string) error {
	if template == "" && p.rabbitmq() && !p.managed() {
		return &kindError{driver.Unsupported, fmt.Errorf("%s does not know addresses such as /queues/NAME: it takes RabbitMQ 4 or later, or the option address, "+
			"such as /queue/{topic}, and queues that are there", p)}
	}
	return nil
}

// managed is true of a RabbitMQ that is managed over AMQP 1.0, as all are from version 4.
func (p product) managed() bool {
	major, _, _ := strings.Cut(p.version, ".")
	n, err := strconv.Atoi(major)
	return p.rabbitmq() && (err != nil || n >= 4)
}

// address is where a topic is at this server. RabbitMQ's addresses (of version 2) say what is meant, all others' are names.
func (p product) address(template, topic string, m mode) string {
	switch {
	case template != "":
		return strings.ReplaceAll(template, "{topic}", topic)
	case !p.rabbitmq():
		return topic
	case m == pubsub:
		return "/exchanges/" + url.PathEscape(topic)
	default:
		return "/queues/" + url.PathEscape(topic)
	}
}
