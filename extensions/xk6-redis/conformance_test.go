package redis_test

import (
	"os"
	"testing"

	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-redis"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

func TestConformance(t *testing.T) {
	for name, variable := range map[string]string{
		"redis-streams": "BROKER_URL_REDIS_STREAMS",
		"redis-pubsub":  "BROKER_URL_REDIS_PUBSUB",
		"redis-list":    "BROKER_URL_REDIS_LIST",
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, drivertest.Harness{Driver: name, URL: os.Getenv(variable), HeaderBytes: true})
		})
	}
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "redis-streams://127.0.0.1:1") }
