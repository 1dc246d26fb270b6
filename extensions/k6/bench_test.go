package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
)

// cost runs a script and gives the CPU time that k6 took for it, and its outcome.
func cost(tb testing.TB, text string, env ...string) (time.Duration, outcome) {
	tb.Helper()
	dir := tb.TempDir()
	path, out := filepath.Join(dir, "script.js"), filepath.Join(dir, "outcome.json")
	if err := os.WriteFile(path, []byte("import broker from 'k6/x/broker';\n"+text+leaveOutcome), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(k6Path, "run", "--quiet", path)
	cmd.Env = append(os.Environ(), append([]string{"K6_NO_USAGE_REPORT=true", "OUTCOME=" + out}, env...)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, said)
	}
	var o outcome
	data, err := os.ReadFile(out)
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), o
}

func medianOf(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkJavaScriptSend compares the CPU per iteration of `await send()` in an arrival-rate scenario with that of an empty async
// iteration. BROKER_URL_NATS and so on choose an external server; the embedded one's own CPU would count as k6's.
func BenchmarkJavaScriptSend(b *testing.B) {
	const rate, seconds = 2000, 8
	scenario := fmt.Sprintf(`
export const options = { scenarios: { s: { executor: 'constant-arrival-rate', rate: %d, duration: '%ds', preAllocatedVUs: 100 } } };
`, rate, seconds)
	brokers := map[string]string{
		"nats": os.Getenv("BROKER_URL_NATS"), "nats-jetstream": os.Getenv("BROKER_URL_NATS_JETSTREAM"),
		"kafka": os.Getenv("BROKER_URL_KAFKA"), "rabbitmq": os.Getenv("BROKER_URL_RABBITMQ"),
		"redis-streams": os.Getenv("BROKER_URL_REDIS_STREAMS"),
	}
	empty := func() float64 {
		cpu, o := cost(b, scenario+"export default async function () {}")
		return float64(cpu.Microseconds()) / o.Metrics["iterations"].Values["count"]
	}
	for _, name := range []string{"nats", "nats-jetstream", "kafka", "rabbitmq", "redis-streams"} {
		url := brokers[name]
		if url == "" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			var idle, sending []float64
			for range 3 {
				idle = append(idle, empty())
				cpu, o := cost(b, scenario+`
const conn = broker.connect(__ENV.URL);
const p = conn.producer('bench-js');
const body = 'x'.repeat(100);
export async function setup() { await conn.createTopic('bench-js'); }
export default async function () { await p.send({ body }); }
`, "URL="+url)
				sending = append(sending, float64(cpu.Microseconds())/o.Metrics["broker_sent"].Values["count"])
			}
			base, with := medianOf(idle), medianOf(sending)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(with-base, "µs-more")
			rows := []bench.Row{
				{Case: "JavaScript send, " + name, Loop: "empty async iteration", Messages: rate * seconds, Rates: []float64{rate}, Median: rate, CPU: base, Ratio: 1, CPURatio: 1},
				{Case: "JavaScript send, " + name, Loop: "await send", Messages: rate * seconds, Rates: []float64{rate}, Median: rate, CPU: with, Ratio: 1, CPURatio: base / with},
			}
			if err := bench.Write(rows); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkPaced reports the generator's own lateness at 50,000 messages per second.
func BenchmarkPaced(b *testing.B) {
	_, o := cost(b, `
const p = broker.connect('embedded-nats:').producer('paced');
export default async function () { await p.produce({ rate: 50000, duration: '20s' }); }
`)
	lag := o.Result.Topics[0].Trends["schedule_lag"]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantileOf(b, lag, 0.5)*1e3, "lag-p50-µs")
	b.ReportMetric(quantileOf(b, lag, 0.99)*1e3, "lag-p99-µs")
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
	cmd := exec.Command(k6Path, "run", "--quiet", path)
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
	small, large := memory(b, 1_000_000), memory(b, 20_000_000)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(small, "MiB-at-1M")
	b.ReportMetric(large, "MiB-at-20M")
	if large > small+100 {
		b.Errorf("20 million messages took %.0f MiB, 1 million %.0f", large, small)
	}
}
