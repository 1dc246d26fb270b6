package mongodb_test

import (
	"os"
	"testing"
	"time"

	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-mongodb"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

// TestConformance is patient: a consumer is told of a message and then asks for it, and the stand-in, which has no index, looks through all messages for each.
func TestConformance(t *testing.T) {
	on := ""
	if os.Getenv("BROKER_URL_MONGODB") == "" {
		on = "mongo-java-server, not on a real MongoDB"
	}
	drivertest.Run(t, drivertest.Harness{Driver: "mongodb", On: on, URL: givenURL(), HeaderBytes: true, Timeout: 2 * time.Minute, Prompt: 40 * time.Millisecond})
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	drivertest.Strangers(t, "mongodb://127.0.0.1:1/database")
}
