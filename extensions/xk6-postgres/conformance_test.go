package postgres_test

import (
	"os"
	"testing"

	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-postgres"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "postgres", URL: os.Getenv("BROKER_URL_POSTGRES")})
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	drivertest.Strangers(t, "postgres://127.0.0.1:1")
}
