package blueflood_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-blueflood"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

// metrics is how many a producer of the kit has.
const metrics = 100

func serverURL() string { return os.Getenv("BROKER_URL_BLUEFLOOD") }

func TestConformance(t *testing.T) {
	if serverURL() == "" {
		t.Skip("no BROKER_URL_BLUEFLOOD: the server comes as containers only, and the tests of the project do without it")
	}
	drivertest.Run(t, drivertest.Harness{
		Driver: "blueflood", On: "a server that `make test` does not have", URL: with(serverURL(), fmt.Sprintf("metrics=%d&producerName=kit", metrics)),
		Stored: kitStored, Numbers: true, Prompt: 100 * time.Millisecond,
	})
}

// with adds options to a URL.
func with(at, options string) string {
	if strings.Contains(at, "?") {
		return at + "&" + options
	}
	return at + "?" + options
}

func kitStored(t testing.TB, topic string) []driver.Message {
	t.Helper()
	var all []driver.Message
	for _, point := range stored(t, topic+".kit.", metrics) {
		all = append(all, driver.Message{Body: []byte(strconv.FormatFloat(point.Average, 'g', -1, 64))})
	}
	return all
}

// point is one that the query service tells of.
type point struct {
	Timestamp int64
	Average   float64 // the value
}

// stored asks the query service as other programs do, for up to 100 metrics.
func stored(t testing.TB, prefix string, metrics int) (all []point) {
	t.Helper()
	u, err := url.Parse(serverURL())
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, metrics)
	for i := range names {
		names[i] = strconv.Quote(prefix + strconv.Itoa(i))
	}
	now := time.Now()
	resp, err := http.Post(fmt.Sprintf("http://%s:20000/v2.0%s/views?from=%d&to=%d&resolution=FULL", u.Hostname(), u.Path, now.Add(-time.Hour).UnixMilli(),
		now.Add(10*time.Minute).UnixMilli()), "application/json", strings.NewReader("["+strings.Join(names, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Metrics []struct{ Data []point } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	for _, m := range answer.Metrics {
		all = append(all, m.Data...)
	}
	return all
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "blueflood://127.0.0.1:1/tenant") }
