package kurrentdb

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// KurrentDB comes as a container only: this test runs where there is one.
func TestConformance(t *testing.T) {
	if os.Getenv("BROKER_URL_KURRENTDB") == "" {
		t.Skip("no BROKER_URL_KURRENTDB")
	}
	drivertest.Run(t, drivertest.Harness{Driver: "kurrentdb", URL: os.Getenv("BROKER_URL_KURRENTDB")})
}

// The kit as unit tests: it finds what is wrong with the driver's side of the protocol, and proves nothing of a real server, so that it is not recorded.
func TestTheKitOnADouble(t *testing.T) {
	t.Setenv("BROKER_CONFORMANCE", "")
	drivertest.Run(t, drivertest.Harness{Driver: "kurrentdb", URL: start(t, double.Config{}).url})
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "kurrentdb://127.0.0.1:1") }
