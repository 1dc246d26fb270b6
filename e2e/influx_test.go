package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// database is a database of a real InfluxDB that a test has for itself.
type database struct{ server, name string }

// newDatabase makes one. Of a server whose URL has a password it is an InfluxDB 2: the password is a token, and the databases are its buckets.
func newDatabase(t *testing.T) database {
	t.Helper()
	d := database{external(t, "BROKER_URL_INFLUXDB"), fmt.Sprintf("test_%d", time.Now().UnixNano())}
	if d.url(t).User != nil {
		d.makeBucket(t)
		return d
	}
	d.execute(t, "CREATE DATABASE "+d.name) // k6 does it too, where it can
	t.Cleanup(func() { d.execute(t, "DROP DATABASE "+d.name) })
	return d
}

func (d database) url(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(d.server)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// makeBucket makes a bucket of the database's name, which InfluxDB 2 takes for a database of that name.
func (d database) makeBucket(t *testing.T) {
	t.Helper()
	var organizations struct{ Orgs []struct{ ID string } }
	d.api(t, http.MethodGet, "orgs", nil, &organizations)
	if len(organizations.Orgs) == 0 {
		t.Fatal("InfluxDB has no organization")
	}
	var bucket struct{ ID string }
	d.api(t, http.MethodPost, "buckets", map[string]string{"orgID": organizations.Orgs[0].ID, "name": d.name}, &bucket)
	t.Cleanup(func() { d.api(t, http.MethodDelete, "buckets/"+bucket.ID, nil, nil) })
}

// api calls what only InfluxDB 2 has.
func (d database) api(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	u := d.url(t)
	request, err := http.NewRequest(method, "http://"+u.Host+"/api/v2/"+path, bytes.NewReader(text)) // a test's context is over when it cleans up
	if err != nil {
		t.Fatal(err)
	}
	token, _ := u.User.Password()
	request.Header.Set("Authorization", "Token "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
	if answer != nil {
		if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
			t.Fatal(err)
		}
	}
}

func (d database) execute(t *testing.T, statement string) {
	t.Helper()
	response, err := http.PostForm(d.server+"/query", url.Values{"q": {statement}})
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", statement, response.Status, err)
	}
}

// out makes k6 write into the database.
func (d database) out() string { return "K6_OUT=influxdb=" + d.server + "/" + d.name }

// series is what InfluxDB answers with.
type series struct {
	Name    string
	Tags    map[string]string
	Columns []string
	Values  [][]any
}

func (d database) query(t *testing.T, q string) []series {
	t.Helper()
	response, err := http.Get(d.server + "/query?" + url.Values{"db": {d.name}, "q": {q}, "epoch": {"ms"}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	var answer struct {
		Error   string
		Results []struct {
			Error  string
			Series []series
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	if answer.Error != "" || len(answer.Results) != 1 || answer.Results[0].Error != "" {
		t.Fatalf("%s: %+v", q, answer)
	}
	return answer.Results[0].Series
}

// sum adds up a counter.
func (d database) sum(t *testing.T, metric string) (total float64, stored bool) {
	t.Helper()
	return d.total(t, "sum", metric, "")
}

// total applies a function of InfluxQL to a metric; tags are those of a submetric, or empty.
func (d database) total(t *testing.T, function, metric, tags string) (total float64, stored bool) {
	t.Helper()
	q := fmt.Sprintf(`SELECT %s("value") FROM %q`, function, metric)
	if tags != "" {
		q += " WHERE " + conditions(tags)
	}
	for _, s := range d.query(t, q) {
		total, stored = s.Values[0][1].(float64), true
	}
	return total, stored
}

// conditions turns the tags of a submetric, "a:b,c:d", into an InfluxQL condition.
func conditions(tags string) string {
	var all []string
	for pair := range strings.SplitSeq(tags, ",") {
		name, value, _ := strings.Cut(pair, ":")
		all = append(all, fmt.Sprintf(`%q = '%s'`, name, value))
	}
	return strings.Join(all, " AND ")
}

// sameCounts checks every counter of the module, and k6's own of data, against what the database holds, and that it holds as many
// samples of each trend as k6 was given.
func (d database) sameCounts(t *testing.T, o outcome) (checked int) {
	t.Helper()
	for name, metric := range o.Metrics {
		count, isCount := metric.Values["count"]
		_, isCounter := metric.Values["rate"]
		metric, tags, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		if !isCount || !(strings.HasPrefix(metric, "broker_") || strings.HasPrefix(metric, "data_")) {
			continue
		}
		function := "count" // of a trend
		if isCounter {
			function = "sum"
		}
		if stored, _ := d.total(t, function, metric, tags); stored != count {
			t.Errorf("%s: k6 counted %.0f, InfluxDB holds %.0f", name, count, stored)
		}
		if isCounter {
			checked++
		}
	}
	return checked
}

// Two topics, one of them with a name full of signs; two groups; VUs whose tags differ, some by a tag that k6 stores as a field; requeued
// messages; errors: what InfluxDB holds adds up to what k6 counted, counter by counter and tag by tag.
func TestInfluxDBHoldsWhatK6Counted(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	o, r := runToOutcome(t, `
import exec from 'k6/execution';
const conn = broker.connect('embedded:'), twin = broker.connect('embedded:?name=twin');
const topics = ['a', 'b,c=d"e'];
const producers = [conn, twin].flatMap((c) => topics.map((topic) => c.producer(topic)));
const readers = topics.flatMap((topic) => ['one', 'two'].map((group) => conn.consumer(topic, { group })));
export const options = {
  summaryTrendStats: ['count'],
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume', vus: 4, tags: { odd: 'x y,z="ü"' } },
    send: { executor: 'constant-arrival-rate', exec: 'send', rate: 60, duration: '4s', preAllocatedVUs: 6, startTime: '1s' },
    produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
  },
  thresholds: {
    'broker_sent{topic:a}': [], 'broker_sent{scenario:send}': [], 'broker_received{topic:a}': [], 'broker_settled{outcome:ack}': [],
    'broker_received{consumer_group:one}': ['count>0'], 'broker_settled{consumer_group:two,outcome:ack}': ['count>0'], 'broker_drained{consumer_group:two}': [],
    'broker_e2e_latency{loop:open,consumer_group:one}': [], 'broker_e2e_latency{loop:closed,consumer_group:one}': [],
    'broker_delivery_wait{loop:closed}': [], 'broker_publish_latency{loop:closed}': [],
    'broker_settled{outcome:requeue}': ['count>0'], 'broker_errors{op:send}': ['count>0'], 'broker_redelivered{topic:a}': [],
    'data_sent{scenario:produce}': [], 'data_received{scenario:consume}': [],
  },
};
export async function setup() { for (const topic of topics) await conn.createTopic(topic); }
export async function send() {
  exec.vu.metrics.tags.url = 'http://host/' + __VU;
  for (const p of producers) await p.send({ body: 'x'.repeat(50 + __VU) });
  if (__ITER == 0) await producers[0].send({ body: 'x'.repeat(2 << 20) }).catch(() => {}); // more than the server takes
}
export async function produce() {
  await Promise.all(producers.map((p) => p.produce({ rate: 500, duration: '3s' })));
  for (const p of producers) await p.send('by no schedule');
}
export async function consume() {
  const reader = readers[(__VU - 1) % readers.length], until = Date.now() + 7000;
  let first = true;
  while (Date.now() < until) {
    const batch = await reader.receive({ max: 50, wait: '300ms' });
    if (batch.length == 0) continue;
    await (first ? reader.nack(batch, { requeue: true }) : reader.ack(batch));
    first = false;
  }
}
`, d.out())
	if n := d.sameCounts(t, o); n < 20 {
		t.Errorf("%d counters: there should be more\n%v", n, r)
	}
	for _, name := range []string{"broker_sent", "broker_redelivered", "broker_errors", "broker_lost"} {
		if _, stored := d.sum(t, name); !stored {
			t.Errorf("no %s was stored\n%v", name, r)
		}
	}
	if r.code != 0 || strings.Contains(r.stderr, "Couldn't write") {
		t.Error(r)
	}
	for _, topic := range o.Result.Topics {
		if topic.Counts["sent"] == 0 {
			t.Errorf("nothing was sent to a topic: %+v", topic.Counts)
		}
	}
}

// At 200,000 messages a second InfluxDB gets less than 4,000 points a second, and they add up. Without catching up it is some 1,500.
func TestInfluxDBAtHighRates(t *testing.T) {
	d := newDatabase(t)
	o, r := runToOutcome(t, `
const conn = broker.connect('embedded-nats:');
const p = conn.producer('fast');
const c = conn.consumer('fast');
export const options = { summaryTrendStats: ['count'], scenarios: {
  consume: { executor: 'per-vu-iterations', exec: 'consume' },
  produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
} };
export async function produce() { await p.produce({ rate: 200000, duration: '10s' }); }
export async function consume() { await c.consume({ duration: '13s', batch: 500 }); }
`, d.out())
	if n := d.sameCounts(t, o); n < 10 {
		t.Errorf("%d counters: there should be more\n%v", n, r)
	}
	if sent, _ := d.sum(t, "broker_sent"); sent != 2_000_000 {
		t.Errorf("sent %.0f of 2000000\n%v", sent, r)
	}
	perSecond, all := map[float64]float64{}, 0.0
	for _, s := range d.query(t, `SELECT count("value") FROM /.*/ WHERE time > now() - 5m GROUP BY time(1s) fill(none)`) {
		for _, row := range s.Values {
			perSecond[row[0].(float64)] += row[1].(float64)
			all += row[1].(float64)
		}
	}
	most := 0.0
	for _, n := range perSecond {
		most = max(most, n)
	}
	t.Logf("%.0f points in all, at most %.0f of a second", all, most)
	if most == 0 || most >= 4000 {
		t.Errorf("%.0f points of one second", most)
	}
}

// An InfluxDB that is not there, goes away, or does not answer for a while is none of the test's business.
func TestALostInfluxDBDoesNotDisturbTheTest(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, c := range []struct {
		name    string
		disturb func(p *proxy.Proxy)
		holds   func(stored, count float64) bool
	}{
		{"not there", func(p *proxy.Proxy) { p.Refuse(true) }, func(stored, _ float64) bool { return stored == 0 }},
		{"goes away", func(p *proxy.Proxy) {
			time.AfterFunc(4*time.Second, func() { p.Refuse(true); p.Cut() })
		}, func(stored, count float64) bool { return stored > 0 && stored < count }},
		{"does not answer for a while", func(p *proxy.Proxy) {
			time.AfterFunc(4*time.Second, p.Freeze)
			time.AfterFunc(12*time.Second, p.Thaw)
		}, func(stored, count float64) bool { return stored == count }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := proxy.Listen(d.url(t).Host)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close() //nolint:errcheck // the test is over
			own := newDatabase(t)
			c.disturb(p)
			o, r := runToOutcome(t, `
const conn = broker.connect('embedded-nats:');
const p = conn.producer('quiet'), c = conn.consumer('quiet');
export const options = {
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume' },
    produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
  },
  thresholds: { broker_schedule_lag: ['p(99)<1000'], broker_e2e_latency: ['p(99)<1000'], broker_lost: ['count==0'] },
};
export async function produce() { await p.produce({ rate: 1000, duration: '6s' }); }
export async function consume() { await c.consume({ duration: '8s' }); }
`, strings.Replace(own.out(), d.url(t).Host, p.Addr(), 1))
			count := o.Metrics["broker_received"].Values["count"]
			if !r.kept() || count != 6000 {
				t.Errorf("received %.0f of 6000\n%v", count, r)
			}
			stored, _ := own.sum(t, "broker_received")
			if !c.holds(stored, count) {
				t.Errorf("InfluxDB holds %.0f of %.0f\n%v", stored, count, r)
			}
		})
	}
}
