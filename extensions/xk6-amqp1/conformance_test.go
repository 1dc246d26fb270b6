package amqp1_test

import (
	"os"
	"testing"
	"time"

	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-amqp1"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

// artemis is the server of scripts/broker, which confirms no settlements.
func artemis(name, variable string) drivertest.Harness {
	return drivertest.Harness{Driver: name, On: "Artemis", URL: os.Getenv(variable), HeaderBytes: true, SettleUnconfirmed: true, Prompt: 15 * time.Millisecond}
}

func TestQueueConforms(t *testing.T) { drivertest.Run(t, artemis("amqp1", "BROKER_URL_AMQP1")) }

func TestPubSubConforms(t *testing.T) {
	drivertest.Run(t, artemis("amqp1-pubsub", "BROKER_URL_AMQP1_PUBSUB"))
}

// RabbitMQ 4 is none of the servers of scripts/broker: BROKER_RABBITMQ4 is the address of one, such as guest:guest@127.0.0.1:5672.
func TestRabbitMQConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	at := os.Getenv("BROKER_RABBITMQ4")
	if at == "" {
		t.Skip("no BROKER_RABBITMQ4")
	}
	t.Run("classic", func(t *testing.T) {
		drivertest.Run(t, drivertest.Harness{Driver: "amqp1", On: "RabbitMQ 4", URL: "amqp1://" + at, HeaderBytes: true, SettleUnconfirmed: true})
	})
	t.Run("quorum", func(t *testing.T) {
		drivertest.Run(t, drivertest.Harness{Driver: "amqp1", On: "RabbitMQ 4", URL: "amqp1://" + at + "?queueType=quorum", HeaderBytes: true, SettleUnconfirmed: true})
	})
	t.Run("pubsub", func(t *testing.T) {
		drivertest.Run(t, drivertest.Harness{Driver: "amqp1-pubsub", On: "RabbitMQ 4", URL: "amqp1-pubsub://" + at, HeaderBytes: true, SettleUnconfirmed: true})
	})
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "amqp1://127.0.0.1:1") }
