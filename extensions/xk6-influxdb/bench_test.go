package influxdb_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-influxdb/internal/raw"
)

// BenchmarkPublish compares the driver, and the engine on it, with a loop written by hand over net/http: the same server, size of messages, points of a
// request and requests at a time. Run it with -benchtime=1x. BROKER_URL_INFLUXDB names the server.
func BenchmarkPublish(b *testing.B) {
	if serverURL() == "" {
		b.Skip("no BROKER_URL_INFLUXDB")
	}
	const size, count, batch, requests = 100, 100_000, 64, 4
	topic := fmt.Sprint("bench-", time.Now().UnixNano())
	s := bench.Open(b, serverURL(), topic, driver.TopicSpec{}, nil)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: requests}}
	url := os.Getenv("BROKER_URL_INFLUXDB") + "/write?precision=ns&db=" + database
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(rand.IntN(256)) // as the engine's, which are sent in base64
	}
	field := `base64="` + base64.StdEncoding.EncodeToString(body) + `"`
	sending := bench.Sending{Count: count, Size: size, Window: batch * requests, Workers: requests}
	bench.Case{Name: "influxdb, 4 requests of 64 points at a time", Messages: count, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Write(client, url, topic, field, count, batch, requests)
		}},
		s.Produce(sending),
	}}.Compare(b)
}
