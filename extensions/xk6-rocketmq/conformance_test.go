package rocketmq

import (
	"os"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The URL's address is used and not the one that the server advertises, so that a proxy can stand in front of it; and a consumer that closes waits for
// no longer than the server of scripts/broker needs it to.
func TestConformance(t *testing.T) {
	url := os.Getenv("BROKER_URL_ROCKETMQ")
	if url != "" {
		url += "&endpoints=url&pollTime=300ms"
	}
	drivertest.Run(t, drivertest.Harness{Driver: "rocketmq", URL: url, Prompt: 40 * time.Millisecond})
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "rocketmq://127.0.0.1:1") }
