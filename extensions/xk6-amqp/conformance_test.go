package amqp_test

import (
	"net/url"
	"os"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-amqp"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is the URL of the RabbitMQ to test with, by another scheme and with more options; empty where there is none.
func server(tb testing.TB, scheme string, options ...string) string {
	tb.Helper()
	raw := os.Getenv("BROKER_URL_RABBITMQ")
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal("BROKER_URL_RABBITMQ is malformed")
	}
	u.Scheme = scheme
	q := u.Query()
	for i := 0; i+1 < len(options); i += 2 {
		q.Set(options[i], options[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func TestClassicQueue(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "rabbitmq", URL: server(t, "rabbitmq"), HeaderBytes: true})
}

func TestQuorumQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	drivertest.Run(t, drivertest.Harness{Driver: "rabbitmq", URL: server(t, "rabbitmq", "queueType", "quorum"), HeaderBytes: true})
}

func TestStream(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "rabbitmq-stream", URL: server(t, "rabbitmq-stream"), HeaderBytes: true})
}

func TestPubsub(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "rabbitmq-pubsub", URL: server(t, "rabbitmq-pubsub"), HeaderBytes: true})
}

func TestPubsubQuorum(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	drivertest.Run(t, drivertest.Harness{Driver: "rabbitmq-pubsub", URL: server(t, "rabbitmq-pubsub", "queueType", "quorum"), HeaderBytes: true})
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "rabbitmq://127.0.0.1:1") }
