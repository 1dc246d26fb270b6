package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// The sweep of batch and concurrency runs on every store by its URL alone: each pair is measured, and each request has as many messages as the batch.
func TestTheSweepOfAStore(t *testing.T) {
	stores := map[string]string{"blueflood": os.Getenv("BROKER_URL_BLUEFLOOD")}
	if server, ok := strings.CutPrefix(os.Getenv("BROKER_URL_INFLUXDB"), "http://"); ok {
		stores["influxdb"] = fmt.Sprintf("influxdb://%s/sweep?createDatabase=true", server)
	}
	for name, url := range stores {
		t.Run(name, func(t *testing.T) {
			if url == "" {
				t.Skip("no server")
			}
			topic := fmt.Sprintf("sweep-%d", time.Now().UnixNano())
			r, _ := harness.Scenario(t, "../scenarios/batch-concurrency.js",
				"BROKER_URL="+url, "TOPIC="+topic, "BATCHES=1,30", "CONCURRENCY=1,4", "DURATION=1s", "WARMUP=200ms", "PAUSE=0s")
			for _, batch := range []int{1, 30} {
				for _, concurrency := range []int{1, 4} {
					pair := fmt.Sprintf("batch %d, concurrency %d: ", batch, concurrency)
					if !strings.Contains(r.Stderr, pair) || strings.Contains(r.Stderr, pair+"0 messages/s") {
						t.Errorf("no %q in\n%s", pair, r.Stderr)
					}
					line := fmt.Sprintf("%s-batch%d-concurrency%d ", topic, batch, concurrency)
					_, after, _ := strings.Cut(r.Stdout, line)
					sent, err := strconv.Atoi(append(strings.Fields(after), "")[0])
					if err != nil || sent == 0 || sent%batch != 0 {
						t.Errorf("%s: sent %d, %v:\n%s", line, sent, err, r.Stdout)
					}
				}
			}
			if name == "blueflood" && !strings.Contains(r.Stdout, "read back: expected ") {
				t.Errorf("it was not read back:\n%s", r.Stdout)
			}
		})
	}
}
