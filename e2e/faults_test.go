package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// external gives the URL of a real broker from the environment, or skips.
func external(t *testing.T, env string) string {
	t.Helper()
	url := os.Getenv(env)
	if url == "" {
		if os.Getenv("BROKER_REQUIRE") != "" {
			t.Fatalf("%s is not set", env)
		}
		t.Skipf("%s is not set", env)
	}
	return url
}

// outcome is what the scripts of these tests leave behind in handleSummary.
type outcome struct {
	Metrics map[string]struct {
		Values     map[string]float64 `json:"values"`
		Thresholds map[string]struct {
			OK bool `json:"ok"`
		} `json:"thresholds"`
	} `json:"metrics"`
	Result summary.Summary
}

const leaveOutcome = `
export function handleSummary(data) {
  return { [__ENV.OUTCOME]: JSON.stringify({ metrics: data.metrics, result: broker.result() }) };
}
`

func runToOutcome(t *testing.T, text string, env ...string) (outcome, result) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outcome.json")
	r := k6(t, append(env, "OUTCOME="+path), "run", "--quiet", script(t, "import broker from 'k6/x/broker';\n"+text+leaveOutcome))
	var o outcome
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no outcome: %v\n%v", err, r)
	}
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	return o, r
}

// A broker that freezes for 2 s in a 20 s run at 1,000/s: a tenth of the messages waits, evenly from 0 to 2 s. k6's own iteration
// duration does not show it, for a loop in Go is one iteration.
func TestAFrozenBrokerShowsInPublishLatency(t *testing.T) {
	url := external(t, "BROKER_URL_NATS_JETSTREAM")
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
	o, r := runToOutcome(t, `
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

// Two consumers of one group; one closes with messages received and not acknowledged. They come again and nothing is lost.
func TestAConsumerThatDiesMidBatch(t *testing.T) {
	t.Parallel()
	o, r := runToOutcome(t, `
const conn = broker.connect('embedded:');
const p = conn.producer('death');
const c = conn.consumer('death', { group: 'workers', ackWait: '2s' });
export const options = { scenarios: {
  survive: { executor: 'constant-vus', vus: 1, duration: '9s', exec: 'survive' },
  die: { executor: 'per-vu-iterations', vus: 1, iterations: 1, exec: 'die' },
  produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
} };
export async function setup() { await conn.createTopic('death'); }
export async function produce() { await p.produce({ rate: 500, duration: '4s' }); }
export async function survive() { await c.ack(await c.receive({ max: 10, wait: '300ms' })); }
export async function die() {
  let held = 0;
  while (held < 100) held += (await c.receive({ max: 50, wait: '1s' })).length;
  await c.close();
}
`)
	g := o.Result.Topics[0].Groups
	if len(g) != 1 || g[0].Expected != 2000 || g[0].Lost != 0 || g[0].Missing != 0 || g[0].Redelivered < 100 || g[0].Duplicated != 0 {
		t.Errorf("accounting: %+v\n%v", g, r)
	}
}

// What k6 counts, thresholds see, and the engine counted are the same to the message; a threshold on p(99) agrees with the
// histogram's own, at a rate far above what k6 could hold sample by sample.
func TestThresholdsAgreeWithTheHistogramAtHighRates(t *testing.T) {
	o, r := runToOutcome(t, `
const conn = broker.connect('embedded-nats:');
const p = conn.producer('fast');
const c = conn.consumer('fast');
export const options = {
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume' },
    produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
  },
  summaryTrendStats: ['p(99)', 'count'], thresholds: { broker_e2e_latency: ['p(99)<60000'] },
};
export async function produce() { await p.produce({ rate: 200000, duration: '10s' }); }
export async function consume() { await c.consume({ duration: '13s', batch: 500 }); }
`)
	topic := o.Result.Topics[0]
	trend := topic.Trends["e2e_latency"]
	for counter, metric := range map[string]string{"sent": "broker_sent", "confirmed": "broker_confirmed", "received": "broker_received"} {
		if got := o.Metrics[metric].Values["count"]; int64(got) != topic.Counts[counter] {
			t.Errorf("k6 counted %v %s, the engine %d", got, counter, topic.Counts[counter])
		}
	}
	if topic.Counts["sent"] != 2_000_000 {
		t.Errorf("sent %d of 2000000\n%v", topic.Counts["sent"], r)
	}
	if samples := o.Metrics["broker_e2e_latency"].Values["count"]; samples > 10_000 {
		t.Errorf("k6 was given %v samples for %d messages", samples, trend.Count)
	}
	exact, sampled := trend.Milliseconds(0.99), o.Metrics["broker_e2e_latency"].Values["p(99)"]
	t.Logf("p99: histogram %.3f ms, threshold %.3f ms", exact, sampled)
	// Within one hundredth of rank is what the sample promises; the value may differ by as much as the distribution is steep there.
	low, high := trend.Milliseconds(0.988), trend.Milliseconds(0.992)
	if sampled < low*0.99 || sampled > high*1.01 {
		t.Errorf("p(99) is %.3f ms by the samples and %.3f by the histogram (p98.8 %.3f, p99.2 %.3f)", sampled, exact, low, high)
	}
}
