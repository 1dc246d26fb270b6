package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// cost runs a script and gives the CPU time that k6 took for it, and its outcome.
func cost(tb testing.TB, text string, env ...string) (time.Duration, harness.Outcome) {
	tb.Helper()
	dir := tb.TempDir()
	path, out := filepath.Join(dir, "script.js"), filepath.Join(dir, "outcome.json")
	if err := os.WriteFile(path, []byte("import broker from 'k6/x/broker';\n"+text+harness.LeaveOutcome), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(harness.Binary, "run", "--quiet", path)
	cmd.Env = append(os.Environ(), append([]string{"K6_NO_USAGE_REPORT=true", "OUTCOME=" + out}, env...)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, said)
	}
	var o harness.Outcome
	data, err := os.ReadFile(out)
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), o
}

// BenchmarkJavaScriptSend compares the CPU of k6 per iteration of `await send()` in an arrival-rate scenario with that of an empty
// async iteration, on every broker whose URL the environment has: BROKER_URL_NATS and so on. Beside it is what the client library
// takes for a message at the same pace, of which most is the network's, and what k6 takes for an iteration that waits for its own timer.
func BenchmarkJavaScriptSend(b *testing.B) {
	const rate, seconds, rounds = 5000, 4, 5
	scenario := fmt.Sprintf(`
export const options = { scenarios: { s: { executor: 'constant-arrival-rate', rate: %d, duration: '%ds', preAllocatedVUs: 200 } } };
`, rate, seconds)
	load := bench.LoadAverage()
	names := fastEnough(b, rate)
	// Both scripts describe and create the same, so that only the iterations differ.
	script := func(iteration string) string {
		return scenario + `
const conn = broker.connect(__ENV.URL);
const p = conn.producer('bench-js');
const body = 'x'.repeat(100);
export async function setup() { await conn.createTopic('bench-js'); }
export async function teardown() { try { await conn.deleteTopic('bench-js'); } catch (e) { /* not every broker has topics */ } }
export default async function () {` + iteration + `}
`
	}
	sessions := map[string]*bench.Session{}
	for _, name := range names {
		sessions[name] = bench.Open(b, urlOf(name), "bench-go-"+name, driver.TopicSpec{}, nil)
	}
	spent, bare, collected := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	var waited []float64
	for range rounds {
		cpu, o := cost(b, script(""), "URL="+urlOf(names[0]))
		empty := float64(cpu.Microseconds()) / o.Metrics["iterations"].Values["count"]
		spent[""] = append(spent[""], empty)
		cpu, o = cost(b, script("await new Promise((done) => setTimeout(done, 1));"), "URL="+urlOf(names[0]))
		waited = append(waited, float64(cpu.Microseconds())/o.Metrics["iterations"].Values["count"]-empty)
		for _, name := range names {
			cpu, o := cost(b, script("await p.send({ body });"), "URL="+urlOf(name))
			sent, confirmed := o.Metrics["broker_sent"].Values["count"], o.Metrics["broker_confirmed"].Values["count"]
			if sent == 0 || confirmed < sent {
				b.Fatalf("%s: %.0f of %.0f messages were confirmed", name, confirmed, sent)
			}
			spent[name] = append(spent[name], float64(cpu.Microseconds())/sent-empty)
			plain, o := cost(b, script("await p.send({ body });"), "URL="+urlOf(name), "GOGC=100")
			collected[name] = append(collected[name], float64(plain.Microseconds())/o.Metrics["broker_sent"].Values["count"]*sent/float64(cpu.Microseconds()))
			bare[name] = append(bare[name], pacedCost(b, sessions[name].Conn(), name, rate, 2*time.Second))
		}
	}
	b.ReportMetric(0, "ns/op")
	figures := []bench.Figure{
		{Case: "JavaScript, CPU of k6", Name: "empty async iteration", Value: bench.Median(spent[""]), Unit: "µs", Load: load},
		{Case: "JavaScript, CPU of k6", Name: "await of k6's own timer of 1 ms, more than empty", Value: bench.Median(waited), Unit: "µs", Load: load},
	}
	for _, name := range names {
		b.ReportMetric(bench.Median(spent[name]), name+"-µs-more")
		figures = append(figures, bench.Figure{
			Case: "JavaScript, CPU of k6", Name: "await send, " + name + ", more than empty", Value: bench.Median(spent[name]), Unit: "µs", Load: load,
		}, bench.Figure{
			Case: "JavaScript, CPU of k6", Name: "the client library alone in Go, " + name, Value: bench.Median(bare[name]), Unit: "µs", Load: load,
		}, bench.Figure{
			Case: "JavaScript, CPU of k6", Name: "await send, " + name + ", with GOGC=100 instead", Value: bench.Median(collected[name]), Unit: "×", Load: load,
		})
	}
	if err := bench.Write(figures...); err != nil {
		b.Fatal(err)
	}
}

// pacedCost returns the CPU time of this process, in µs, in which the client library sends one message at a steady pace, less the time of
// the same loop without sending.
func pacedCost(tb testing.TB, conn driver.Conn, name string, perSecond int, length time.Duration) float64 {
	tb.Helper()
	address, err := driver.ParseURL(urlOf(name), nil)
	if err != nil {
		tb.Fatal(err)
	}
	options, err := address.Resolve(driver.OnProducer, nil)
	if err != nil {
		tb.Fatal(err)
	}
	producer, err := conn.NewProducer(tb.Context(), driver.ProducerConfig{Topic: "bench-go-" + name, Window: 4096, Options: options})
	if err != nil {
		tb.Fatal(err)
	}
	var confirmed atomic.Int64
	batch := driver.Batch{{Body: make([]byte, 100)}}
	count := int(length.Seconds() * float64(perSecond))
	empty := paced(perSecond, count, func() {})
	sending := paced(perSecond, count, func() {
		producer.Send(tb.Context(), batch, func(_ int, err error) {
			if err == nil {
				confirmed.Add(1)
			}
		})
	})
	if err := producer.Close(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	if n := confirmed.Load(); n != int64(count) {
		tb.Fatalf("%s: %d of %d messages were confirmed", name, n, count)
	}
	return float64((sending - empty).Nanoseconds()) / 1e3 / float64(count)
}

// paced calls do at a steady pace and returns the CPU time of all calls.
func paced(perSecond, count int, do func()) time.Duration {
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := cpu()
	start := time.Now()
	for i := range count {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		do()
	}
	return cpu() - before
}

// BenchmarkExecutorsSend compares the CPU of k6 per iteration of `await send()` under open-arrival-rate, whose iterations begin when they
// are due, with that under k6's constant-arrival-rate, whose timers may be a millisecond late and then start several at a time.
func BenchmarkExecutorsSend(b *testing.B) {
	const rate, seconds, rounds = 8000, 4, 5
	load := bench.LoadAverage()
	executors := []string{"constant-arrival-rate", "open-arrival-rate"}
	const script = `
export const options = { scenarios: { s: { executor: __ENV.EXECUTOR, rate: Number(__ENV.RATE), duration: __ENV.LENGTH, preAllocatedVUs: 200 } } };
const conn = broker.connect(__ENV.URL);
const p = conn.producer('bench-executors');
const body = 'x'.repeat(100);
export async function setup() { await conn.createTopic('bench-executors'); }
export async function teardown() { try { await conn.deleteTopic('bench-executors'); } catch (e) { /* not every broker has topics */ } }
export default async function () { await p.send({ body }); }
`
	b.ReportMetric(0, "ns/op")
	var figures []bench.Figure
	for _, name := range fastEnough(b, rate) {
		run := func(executor string, rate int, length string) (time.Duration, float64) {
			cpu, o := cost(b, script, "URL="+urlOf(name), "EXECUTOR="+executor, fmt.Sprint("RATE=", rate), "LENGTH="+length)
			return cpu, o.Metrics["broker_confirmed"].Values["count"]
		}
		var ratios []float64
		spent := map[string][]float64{}
		for round := range rounds {
			each := map[string]float64{}
			for turn := range executors {
				executor := executors[(turn+round)%len(executors)] // whoever comes second finds the machine warm
				idle, _ := run(executor, 1, "1s")
				cpu, confirmed := run(executor, rate, fmt.Sprint(seconds, "s"))
				if confirmed == 0 {
					b.Fatalf("%s: nothing was confirmed", name)
				}
				each[executor] = float64((cpu - idle).Nanoseconds()) / 1e3 / confirmed
				spent[executor] = append(spent[executor], each[executor])
			}
			ratios = append(ratios, each[executors[1]]/each[executors[0]])
		}
		of := fmt.Sprintf("CPU of k6, await send at %d/s, %s", rate, name)
		for _, executor := range executors {
			figures = append(figures, bench.Figure{Case: of, Name: executor, Value: bench.Median(spent[executor]), Unit: "µs", Load: load})
		}
		figures = append(figures, bench.Figure{Case: of, Name: "open-arrival-rate, to k6's own", Value: bench.Median(ratios), Unit: "×", Load: load})
		b.ReportMetric(bench.Median(ratios), name+"-to-k6's")
	}
	for _, f := range figures {
		b.Logf("%s: %s: %.2f %s", f.Case, f.Name, f.Value, f.Unit)
	}
	if err := bench.Write(figures...); err != nil {
		b.Fatal(err)
	}
}

// urlOf is the URL that the environment has for a driver.
func urlOf(name string) string {
	return os.Getenv("BROKER_URL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
}

// fastEnough is the drivers whose URLs the environment has, and whose brokers confirm that many messages in a second: what a driver takes that does
// not keep up with its load says nothing. Of drivers that send the same to one broker, and differ in how they receive, it is the first.
func fastEnough(b *testing.B, rate int) []string {
	b.Helper()
	type way struct {
		broker  string
		confirm driver.Confirm
	}
	measured := map[way]bool{}
	var names []string
	for _, d := range driver.Drivers() {
		raw := urlOf(d.Name)
		a, err := driver.ParseURL(raw, nil)
		if err != nil || a.Driver.Name != d.Name { // InfluxDB's is for its other users too
			continue
		}
		u, err := url.Parse(raw)
		if err != nil {
			b.Fatal(err)
		}
		this := way{u.Host, d.Features.Confirm}
		if measured[this] {
			continue
		}
		_, o := cost(b, fmt.Sprintf(`
export const options = { scenarios: { s: { executor: 'constant-arrival-rate', rate: %d, duration: '2s', preAllocatedVUs: 200 } } };
const conn = broker.connect(__ENV.URL);
const p = conn.producer('bench-try');
export async function setup() { await conn.createTopic('bench-try'); }
export async function teardown() { try { await conn.deleteTopic('bench-try'); } catch (e) { /* not every broker has topics */ } }
export default async function () { await p.send('x'); }
`, rate), "URL="+raw)
		if confirmed := o.Metrics["broker_confirmed"].Values["count"]; confirmed < 1.9*float64(rate) {
			b.Logf("%s is left out: %.0f messages of %d/s were confirmed in 2 s", d.Name, confirmed, rate)
			continue
		}
		names, measured[this] = append(names, d.Name), true
	}
	if len(names) == 0 {
		b.Skip("no BROKER_URL_NATS or another, or none that keeps up")
	}
	return names
}

// BenchmarkPaced reports the generator's own lateness at 50,000 messages per second.
func BenchmarkPaced(b *testing.B) {
	load := bench.LoadAverage()
	_, o := cost(b, `
const p = broker.connect('embedded-nats:').producer('paced');
export default async function () { await p.produce({ rate: 50000, duration: '20s' }); }
`)
	lag := o.Result.Topics[0].Trends["schedule_lag"]
	b.ReportMetric(0, "ns/op")
	var figures []bench.Figure
	for _, q := range []float64{0.5, 0.99, 0.999} {
		at := lag.Milliseconds(q) * 1e3
		b.ReportMetric(at, fmt.Sprintf("lag-p%g-µs", 100*q))
		figures = append(figures, bench.Figure{
			Case: "paced at 50,000/s for 20 s, embedded broker", Name: fmt.Sprintf("schedule lag, p%g", 100*q), Value: at, Unit: "µs", Load: load,
		})
	}
	if err := bench.Write(figures...); err != nil {
		b.Fatal(err)
	}
}

// memory runs count messages through produce and consume and gives the peak of k6's memory, in MiB.
func memory(tb testing.TB, count int) float64 {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "script.js")
	text := fmt.Sprintf(`import broker from 'k6/x/broker';
const conn = broker.connect('embedded-nats:');
const p = conn.producer('flat');
const c = conn.consumer('flat');
export const options = {
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume', maxDuration: '10m' },
    produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s', maxDuration: '10m' },
  },
};
export async function produce() { await p.produce({ rate: 300000, duration: '10m', count: %d }); }
export async function consume() { await c.consume({ idle: '3s', batch: 500 }); }
`, count)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(harness.Binary, "run", "--quiet", path)
	said, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%v\n%s", err, said)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		tb.Skip("this system does not tell a process's memory")
	}
	return float64(usage.Maxrss) / 1024
}

// Memory does not grow with the number of messages.
func BenchmarkMemory(b *testing.B) {
	load := bench.LoadAverage()
	small, large := memory(b, 1_000_000), memory(b, 20_000_000)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(small, "MiB-at-1M")
	b.ReportMetric(large, "MiB-at-20M")
	if err := bench.Write(
		bench.Figure{Case: "memory of k6, produced and consumed", Name: "1 million messages", Value: small, Unit: "MiB", Load: load},
		bench.Figure{Case: "memory of k6, produced and consumed", Name: "20 million messages", Value: large, Unit: "MiB", Load: load},
	); err != nil {
		b.Fatal(err)
	}
	if large > small+100 {
		b.Errorf("20 million messages took %.0f MiB, 1 million %.0f", large, small)
	}
}
