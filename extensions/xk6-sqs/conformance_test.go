package sqs_test

import (
	"os"
	"testing"
	"time"

	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-sqs"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

// elasticMQ is the server of scripts/broker.
const elasticMQ = "ElasticMQ, not on AWS"

func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "sqs", On: elasticMQ, URL: os.Getenv("BROKER_URL_SQS"), HeaderBytes: true, Prompt: 40 * time.Millisecond})
}

// TestConformanceFIFO is patient: for each message of a FIFO queue ElasticMQ looks through all that is with consumers.
func TestConformanceFIFO(t *testing.T) {
	url := os.Getenv("BROKER_URL_SQS_FIFO")
	if url != "" {
		url += "?visibilityTimeout=10m"
	}
	drivertest.Run(t, drivertest.Harness{Driver: "sqs-fifo", On: elasticMQ, URL: url, HeaderBytes: true, Timeout: 2 * time.Minute, Prompt: 40 * time.Millisecond})
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "sqs://key:secret@127.0.0.1:1") }
