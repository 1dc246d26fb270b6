package amqp1

import (
	"errors"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A RabbitMQ before version 4 is told from one that knows this driver's addresses, and is of use where the user says where topics are.
func TestOldRabbitMQ(t *testing.T) {
	old := product{"RabbitMQ", "3.10.8"}
	err := old.speaks("")
	var kind *kindError
	if !errors.As(err, &kind) || kind.kind != driver.Unsupported || !strings.Contains(err.Error(), "takes RabbitMQ 4") {
		t.Errorf("%v: %v", old, err)
	}
	if err := old.speaks("/queue/{topic}"); err != nil || old.managed() {
		t.Errorf("%v with addresses of the user's: %v, managed: %v", old, err, old.managed())
	}
	for _, p := range []product{{"RabbitMQ", "4.0.5"}, {"RabbitMQ", "10.0.0"}, {"apache-activemq-artemis", "2.56.0"}, {}} {
		if err := p.speaks(""); err != nil || p.managed() != p.rabbitmq() {
			t.Errorf("%v: %v, managed: %v", p, err, p.managed())
		}
	}
}
