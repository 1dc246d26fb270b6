package truth

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// What k6 counts, thresholds see, and the engine counted are the same to the message; a threshold on p(99) agrees with the
// histogram's own, at a rate far above what k6 could hold sample by sample.
func TestThresholdsAgreeWithTheHistogramAtHighRates(t *testing.T) {
	o, r := harness.RunToOutcome(t, `
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

// At rates far above what k6 gets sample by sample, its extremes are those of all messages, and the decision is on all of them.
func TestThresholdsAreExactAtHighRates(t *testing.T) {
	o, r := harness.RunToOutcome(t, `
const p = broker.connect('embedded-nats:').producer('fast');
export const options = { scenarios: { produce: { executor: 'per-vu-iterations' } }, summaryTrendStats: ['min', 'max', 'count'], thresholds: {
  broker_publish_latency: ['min>=0', 'max<60000', 'avg<60000', 'med<60000', 'p(99.99)<60000', 'p(99.9)<0.000001'],
} };
export default async function () { await p.produce({ rate: 30000, duration: '5s' }); }`)
	h := o.Result.Topics[0].Trends["publish_latency"]
	k6s := o.Metrics["broker_publish_latency"].Values
	if h.Count != 150_000 || k6s["count"] > 2000 {
		t.Errorf("%d latencies, of which k6 got %v", h.Count, k6s["count"])
	}
	if n := strings.Count(r.Stdout, "about 100 samples a second of each latency"); n != 1 {
		t.Errorf("it is said %d times that k6 has only some\n%v", n, r)
	}
	const ms = 1e6
	if k6s["max"] != float64(h.Max)/ms {
		t.Errorf("k6 has latencies up to %v, all are up to %v", k6s["max"], float64(h.Max)/ms)
	}
	for source, want := range map[string]float64{
		"min>=0": float64(h.Min), "max<60000": float64(h.Max), "avg<60000": h.Mean(), "med<60000": float64(h.Quantile(0.5)),
		"p(99.99)<60000": float64(h.Quantile(0.9999)), "p(99.9)<0.000001": float64(h.Quantile(0.999)),
	} {
		for _, threshold := range o.Result.Thresholds {
			if threshold.Source == source && (threshold.Value == nil || math.Abs(*threshold.Value-want/ms) > 0.001*want/ms) /* three digits */ {
				t.Errorf("%s was decided on %+v, want %v", source, threshold, want/ms)
			}
		}
	}
	if r.Code != 99 {
		t.Error(r)
	}
}

// A script that keeps every receipt knows the latencies of all its messages. A whole ladder of limits is decided as they say.
func TestThresholdsAgreeWithWhatTheScriptSaw(t *testing.T) {
	url := harness.URL(t, "BROKER_URL_NATS_JETSTREAM")
	var limits []string
	for limit := 0.05; limit < 20_000; limit *= 1.1 {
		limits = append(limits, strconv.FormatFloat(limit, 'g', 4, 64))
	}
	o, r := harness.RunToOutcome(t, `
import { b64encode } from 'k6/encoding';
const limits = __ENV.LIMITS.split(',');
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer('oracle');
export const options = { scenarios: { s: { executor: 'per-vu-iterations', maxDuration: '2m' } }, thresholds: {
  broker_publish_latency: ['p(99.9)', 'p(95)', 'max', 'avg'].flatMap((of) => limits.map((limit) => of + '<' + limit)),
} };
export async function setup() { await conn.createTopic('oracle', { storage: 'memory' }); }
export async function teardown() { await conn.deleteTopic('oracle'); }
export default async function () {
  const all = [];
  const sender = async () => { for (let i = 0; i < 1500; i++) all.push((await p.send('x')).latency); };
  await Promise.all([...Array(10)].map(sender));
  all.sort((a, b) => a - b);
  const at = (q) => all[Math.ceil(q * all.length) - 1];
  const saw = { n: all.length, 'p(99.9)': at(0.999), 'p(95)': at(0.95), max: at(1), avg: all.reduce((a, b) => a + b, 0) / all.length };
  console.log('SAW ' + b64encode(JSON.stringify(saw)));
}
`, "BROKER_URL="+url, "LIMITS="+strings.Join(limits, ","))
	saw := sawOf(t, r)
	if saw["n"] != 15_000 || len(o.Result.Thresholds) != 4*len(limits) {
		t.Fatalf("%v, %d thresholds\n%v", saw, len(o.Result.Thresholds), r)
	}
	if n := o.Metrics["broker_publish_latency"].Values["count"]; n >= 15_000 {
		t.Logf("k6 got all %v samples: the machine was too slow to be thinned for", n)
	}
	judged := 0
	for _, threshold := range o.Result.Thresholds {
		method, limit, _ := strings.Cut(threshold.Source, "<")
		value, err := strconv.ParseFloat(limit, 64)
		if err != nil {
			t.Fatal(err)
		}
		if !threshold.Judged {
			t.Errorf("%+v: is this machine too busy for it?", threshold)
			continue
		}
		judged++
		if math.Abs(*threshold.Value-saw[method]) > saw[method]/500 {
			t.Errorf("%s was decided on %v, the receipts say %v", threshold.Source, *threshold.Value, saw[method])
		}
		if near := math.Abs(value-saw[method]) < saw[method]/500; !near && threshold.Held != (saw[method] < value) {
			t.Errorf("%s: held is %v, the receipts say %v", threshold.Source, threshold.Held, saw[method])
		}
		if k6 := o.Metrics["broker_publish_latency"].Thresholds[threshold.Source]; k6.OK != threshold.Held {
			t.Errorf("%s: held is %v, k6 shows %v", threshold.Source, threshold.Held, k6.OK)
		}
	}
	t.Logf("receipts: %v; %d of %d thresholds were judged", saw, judged, len(o.Result.Thresholds))
}

// sawOf reads what a script printed.
func sawOf(t *testing.T, r harness.Result) map[string]float64 {
	t.Helper()
	found := regexp.MustCompile(`SAW ([A-Za-z0-9+/=]+)`).FindStringSubmatch(r.Stderr + r.Stdout)
	if found == nil {
		t.Fatalf("the script said nothing\n%v", r)
	}
	saw := map[string]float64{}
	if err := json.Unmarshal(saw64(t, found[1]), &saw); err != nil {
		t.Fatal(err)
	}
	return saw
}

func saw64(t *testing.T, text string) []byte {
	t.Helper()
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
