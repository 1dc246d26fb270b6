package executors

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// executors are what is compared: k6's own first, as the measure.
var executors = []string{"constant-arrival-rate", Type}

func oneScenario(executor string, rate int, length time.Duration) string {
	return fmt.Sprintf(`{"a":{"executor":"%s","rate":%d,"duration":"%v","preAllocatedVUs":50}}`, executor, rate, length)
}

// compare runs both executors in turns and gives the median of what each round measured, by executor and figure.
func compare(measure func(executor string) map[string]float64) []map[string]float64 {
	all := []map[string][]float64{{}, {}}
	for round := range bench.Rounds {
		for turn := range executors {
			i := (turn + round) % len(executors) // whoever comes second finds the machine warm
			for name, v := range measure(executors[i]) {
				all[i][name] = append(all[i][name], v)
			}
		}
	}
	medians := []map[string]float64{{}, {}}
	for i := range all {
		for name, of := range all[i] {
			medians[i][name] = bench.Median(of)
		}
	}
	return medians
}

// report prints figures, and adds them to the file that BENCH_TABLE names.
func report(b *testing.B, of string, load float64, medians []map[string]float64, unit map[string]string) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	var figures []bench.Figure
	for i, executor := range executors {
		for name, v := range medians[i] {
			figures = append(figures, bench.Figure{Case: of, Name: executor + ", " + name, Value: v, Unit: unit[name], Load: load})
		}
	}
	for name, v := range medians[1] {
		ratio := v / medians[0][name]
		figures = append(figures, bench.Figure{Case: of, Name: name + ", to k6's own", Value: ratio, Unit: "×", Load: load})
		b.ReportMetric(ratio, name+"-to-k6's")
		b.ReportMetric(v, name+"-"+unit[name])
	}
	slices.SortFunc(figures, func(x, y bench.Figure) int {
		return slices.Compare([]string{x.Name}, []string{y.Name})
	})
	for _, f := range figures {
		b.Logf("%s: %s: %.3f %s", f.Case, f.Name, f.Value, f.Unit)
	}
	if err := bench.Write(figures...); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEmptyIterations compares the CPU that k6 takes for an iteration that does nothing, less what it takes to start and to
// end.
func BenchmarkEmptyIterations(b *testing.B) {
	const rate, length = 20_000, 5 * time.Second
	load := bench.LoadAverage()
	empty := func(executor string, rate int, length time.Duration) (cpu time.Duration, iterations int) {
		summary := filepath.Join(b.TempDir(), "summary.json")
		r := k6{
			args: []string{"run", "--quiet", "--summary-export", summary, "testdata/empty.js"},
			env:  map[string]string{"SCENARIOS": oneScenario(executor, rate, length)},
		}.run(b)
		var written struct {
			Metrics struct{ Iterations struct{ Count int } }
		}
		text, err := os.ReadFile(summary)
		if err != nil || json.Unmarshal(text, &written) != nil || r.exit != 0 {
			b.Fatalf("%v, exit code %d\n%s", err, r.exit, r.output)
		}
		return r.cpu, written.Metrics.Iterations.Count
	}
	report(b, fmt.Sprintf("empty iterations at %d/s", rate), load, compare(func(executor string) map[string]float64 {
		idle, _ := empty(executor, 1, time.Second)
		cpu, n := empty(executor, rate, length)
		return map[string]float64{
			"cpu":     float64((cpu - idle).Nanoseconds()) / 1e3 / float64(n),
			"started": 100 * float64(n) / (rate * length.Seconds()),
		}
	}), map[string]string{"cpu": "µs", "started": "%"})
}

// undisturbed runs a command before all else on the machine, where that is allowed: as on a machine that is idle.
func undisturbed() []string {
	if exec.Command("chrt", "-f", "1", "true").Run() != nil {
		return nil
	}
	return []string{"chrt", "-f", "1"}
}

// BenchmarkStartLag compares how much later than due an iteration reaches the script's first line.
func BenchmarkStartLag(b *testing.B) {
	for _, rate := range []int{1000, 12_000} {
		b.Run(fmt.Sprintf("%d per second", rate), func(b *testing.B) { startLag(b, rate) })
	}
}

func startLag(b *testing.B, rate int) {
	const length = 4 * time.Second
	load := bench.LoadAverage()
	of, under := fmt.Sprintf("start lag at %d/s", rate), undisturbed()
	if under == nil {
		of += ", disturbed by what else runs"
	}
	report(b, of, load, compare(func(executor string) map[string]float64 {
		k := arrivals(oneScenario(executor, rate, length))
		k.under = under
		r := k.run(b)
		if r.exit != 0 || len(r.Marks) == 0 {
			b.Fatalf("exit code %d\n%s", r.exit, r.output)
		}
		h := &hist.Histogram{}
		for _, m := range r.Marks {
			h.Record(m.At - m.Due)
		}
		us := func(q float64) float64 { return float64(h.Quantile(q)) / 1e3 }
		return map[string]float64{"p50": us(.5), "p99": us(.99), "p99.9": us(.999)}
	}), map[string]string{"p50": "µs", "p99": "µs", "p99.9": "µs"})
}
