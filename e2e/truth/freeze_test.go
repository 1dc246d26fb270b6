package truth

import (
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// A broker that freezes for 2 s in a 20 s run at 1,000/s: a tenth of the messages waits, evenly from 0 to 2 s. k6's own iteration
// duration does not show it, for a loop in Go is one iteration.
func TestAFrozenBrokerShowsInPublishLatency(t *testing.T) {
	url := harness.URL(t, "BROKER_URL_NATS_JETSTREAM")
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, host, _ := strings.Cut(address.String(), "://")
	p, err := proxy.Listen(host)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // the test is over
	freeze := time.AfterFunc(10*time.Second, p.Freeze)
	thaw := time.AfterFunc(12*time.Second, p.Thaw)
	defer freeze.Stop()
	defer thaw.Stop()
	o, r := harness.RunToOutcome(t, `
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer('freeze', { maxInFlight: 10000 });
export const options = {
  scenarios: {
    produce: { executor: 'per-vu-iterations', exec: 'produce' },
    arrivals: { executor: 'constant-arrival-rate', exec: 'tick', rate: 50, duration: '20s', preAllocatedVUs: 5 },
  },
  summaryTrendStats: ['p(50)', 'p(90)', 'p(95)', 'p(97.5)', 'p(99)', 'max', 'count'],
  thresholds: { 'iteration_duration{scenario:arrivals}': ['p(99)<60000'] },
};
export async function setup() { await conn.createTopic('freeze', { storage: 'memory' }); }
export async function produce() { await p.produce({ rate: 1000, duration: '20s' }); }
export function tick() {}
`, "BROKER_URL="+strings.Replace(url, host, p.Addr(), 1))
	v := o.Metrics["broker_publish_latency"].Values
	if n := o.Metrics["broker_confirmed"].Values["count"]; n != 20000 {
		t.Fatalf("confirmed %v of 20000\n%v", n, r)
	}
	// A tenth of the messages waited, evenly: p95 is about the middle of the stall, p97.5 three quarters of it.
	for name, want := range map[string]float64{"p(95)": 1000, "p(97.5)": 1500, "max": 2000} {
		if got := v[name]; got < want-400 || got > want+1000 {
			t.Errorf("publish latency %s is %.0f ms, theory says %.0f", name, got, want)
		}
	}
	if got := v["p(50)"]; got > 300 {
		t.Errorf("half of the messages were not touched by the stall, yet the median is %.0f ms", got)
	}
	if got := o.Metrics["iteration_duration{scenario:arrivals}"].Values["max"]; got > 1000 {
		t.Errorf("k6's own iteration duration shows %.0f ms: it was not to know of the stall", got)
	}
}
