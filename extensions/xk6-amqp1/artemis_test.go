package amqp1

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

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

// What Artemis stumbles over is asked for again, and what was done all the same is done; any other refusal is one.
func TestStumblesOfArtemis(t *testing.T) {
	stumble := artemisError(`["Cannot invoke \"SessionCallback.disconnect(ServerConsumer, String)\" because \"this.callback\" is null"]`)
	gone, refused := artemisError(`["AMQ229203: Address Does Not Exist: orders"]`), artemisError(`["AMQ229213: no permission"]`)
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"done":              {[]error{nil}, nil},
		"done then":         {[]error{stumble, stumble, nil}, nil},
		"gone by then":      {[]error{stumble, gone}, nil},
		"never there":       {[]error{gone}, gone},
		"refused":           {[]error{refused}, refused},
		"refused then":      {[]error{stumble, refused}, refused},
		"it stumbles again": {[]error{stumble, stumble, stumble, stumble, stumble}, stumble},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			err := overStumbles(t.Context(), func() error { asked++; return c.answers[asked-1] })
			if !errors.Is(err, c.want) || asked != len(c.answers) {
				t.Errorf("%s: %v, asked %d times", name, err, asked)
			}
		})
	}
}
