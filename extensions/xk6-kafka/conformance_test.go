package kafka

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is the URL of a real broker, or "". A single one is taken at its word that it is where the URL says, so that
// the kit's proxy can stand in front of it.
func server(name string) string {
	url := os.Getenv(name)
	if url == "" || strings.Contains(url, ",") {
		return url
	}
	if strings.Contains(url, "?") {
		return url + "&ignoreAdvertised=true"
	}
	return url + "?ignoreAdvertised=true"
}

func TestKafkaConforms(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "kafka", URL: server("BROKER_URL_KAFKA"), HeaderBytes: true})
}

func TestKafkaShareConforms(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "kafka-share", URL: server("BROKER_URL_KAFKA_SHARE"), HeaderBytes: true})
}

func TestKMQConforms(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "kmq", URL: server("BROKER_URL_KMQ"), HeaderBytes: true, Prompt: 40 * time.Millisecond})
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "kafka://127.0.0.1:1") }
