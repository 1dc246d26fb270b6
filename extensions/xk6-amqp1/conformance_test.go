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

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "amqp1://127.0.0.1:1") }
