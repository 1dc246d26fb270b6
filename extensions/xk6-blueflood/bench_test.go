package blueflood_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-blueflood/internal/raw"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// BenchmarkPublish compares the driver, and the engine on it, with a loop written by hand over net/http: the same server, points of a request and requests
// at a time. Run it with -benchtime=1x. BROKER_URL_BLUEFLOOD names the server.
func BenchmarkPublish(b *testing.B) {
	if serverURL() == "" {
		b.Skip("no BROKER_URL_BLUEFLOOD")
	}
	const size, count, batch, requests, metrics = 100, 20_000, 64, 4, 1000
	topic := fmt.Sprint("bench-", time.Now().UnixNano())
	s := bench.Open(b, serverURL(), topic, driver.TopicSpec{}, nil)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: requests}}
	u, err := url.Parse(serverURL())
	if err != nil {
		b.Fatal(err)
	}
	ingest := "http://" + u.Host + "/v2.0" + u.Path + "/ingest"
	// The engine's bodies are no numbers.
	sending := bench.Sending{Count: count, Size: size, Window: batch * requests, Workers: requests, Options: map[string]any{"value": "size", "metrics": metrics}}
	bench.Case{Name: "blueflood, 4 requests of 64 points at a time", Messages: count, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Ingest(client, ingest, topic+".raw.", fmt.Sprint(size), metrics, count, batch, requests)
		}},
		s.Produce(sending),
	}}.Compare(b)
}
