// Package stall is an experiment: a broker stops answering for a second in the middle of a run at a
// constant rate. It compares the reports of each way to drive load with k6 with the computed waits.
package stall

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// The run has Rate messages per second for Length. The broker is silent for Silence from Begin on.
const (
	Rate    = 1000
	Length  = 10 * time.Second
	Begin   = 4 * time.Second
	Silence = time.Second
)

// Quantiles are the columns of the table.
var Quantiles = []float64{0.5, 0.9, 0.95, 0.99, 0.999}

// Way is one way to drive the load.
type Way struct {
	Name   string
	script string
}

const shared = `
import broker from 'k6/x/broker';
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer('stall', { maxInFlight: 100000 });
export async function setup() { await conn.createTopic('stall', { storage: 'memory' }); await conn.purge('stall'); }
export function handleSummary(data) { return { [__ENV.OUTCOME]: JSON.stringify({ result: broker.result() }) }; }
`

func vus(executor string, n int) string {
	return fmt.Sprintf(`
export const options = { scenarios: { s: {
  executor: '%s', rate: %d, duration: '%s', preAllocatedVUs: %d, maxVUs: %d, gracefulStop: '10s',
} } };
export default async function () { await p.send('x'); }
`, executor, Rate, Length, n, n)
}

// Ways returns the compared ways.
func Ways() []Way {
	produce := fmt.Sprintf(
		"export default async function () { await p.produce({ rate: %d, duration: '%s' }); }", Rate, Length,
	)
	return []Way{
		{"`open-arrival-rate`, 50 VUs", vus("open-arrival-rate", 50)},
		{"`produce()`", produce},
		{"`constant-arrival-rate`, 2000 VUs", vus("constant-arrival-rate", 2000)},
		{"`constant-arrival-rate`, 50 VUs", vus("constant-arrival-rate", 50)},
	}
}

// Row is the report of a way.
type Row struct {
	Name    string
	Sent    int64
	Dropped uint64
	Latency *summary.Histogram // publish latency
	Valid   bool
}

// Theory returns the waits of callers: messages due during the silence wait for its end.
func Theory() Row {
	row := Row{Name: "arithmetic", Latency: summary.NewHistogram(), Valid: true}
	for due := time.Duration(0); due < Length; due += time.Second / Rate {
		wait := time.Duration(0)
		if due >= Begin && due < Begin+Silence {
			wait = Begin + Silence - due
		}
		row.Latency.Record(int64(wait))
		row.Sent++
	}
	return row
}

// Run does the experiment with a k6 binary on a JetStream server.
func Run(k6, url string, way Way) (Row, error) {
	row := Row{Name: way.Name}
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		return row, fmt.Errorf("stall: %w", err)
	}
	_, host, _ := strings.Cut(address.String(), "://")
	p, err := proxy.Listen(host)
	if err != nil {
		return row, fmt.Errorf("stall: %w", err)
	}
	defer p.Close() //nolint:errcheck // nothing is lost with it
	dir, err := os.MkdirTemp("", "xk6-broker-stall-")
	if err != nil {
		return row, fmt.Errorf("stall: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	path, out := filepath.Join(dir, "script.js"), filepath.Join(dir, "outcome.json")
	if err := os.WriteFile(path, []byte(shared+way.script), 0o600); err != nil {
		return row, fmt.Errorf("stall: %w", err)
	}
	cmd := exec.Command(k6, "run", "--quiet", path) //gosec:disable G204 -- a k6 that was built here
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "OUTCOME="+out,
		"BROKER_URL="+strings.Replace(url, host, p.Addr(), 1))
	freeze := time.AfterFunc(Begin+time.Second, p.Freeze) // k6 sends after about a second
	thaw := time.AfterFunc(Begin+time.Second+Silence, p.Thaw)
	defer freeze.Stop()
	defer thaw.Stop()
	if output, err := cmd.CombinedOutput(); err != nil {
		return row, fmt.Errorf("stall: %s: %w\n%s", way.Name, err, output)
	}
	return row, row.read(out)
}

func (r *Row) read(path string) error {
	var o struct{ Result summary.Summary }
	text, err := os.ReadFile(path) //gosec:disable G304 -- a result of k6
	if err != nil {
		return fmt.Errorf("stall: %w", err)
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return fmt.Errorf("stall: %w", err)
	}
	if len(o.Result.Topics) != 1 || o.Result.Topics[0].Trends["publish_latency"] == nil {
		return fmt.Errorf("stall: %s: nothing was sent", r.Name)
	}
	topic := o.Result.Topics[0]
	r.Sent, r.Dropped, r.Valid = topic.Counts["sent"], o.Result.Dropped, o.Result.Verdict.Valid
	r.Latency = topic.Trends["publish_latency"]
	return nil
}
