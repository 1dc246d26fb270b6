package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

const summaryScript = `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded-nats:');
const p = conn.producer('summary'), c = conn.consumer('summary', { group: 'workers' });
export const options = {
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume' },
    produce: { executor: 'open-arrival-rate', exec: 'produce', rate: 100, duration: '2s', preAllocatedVUs: 5, startTime: '1s' },
  },
  thresholds: JSON.parse(__ENV.THRESHOLDS || '{}'),
};
export async function produce() { await p.send({ body: 'x' }); }
export async function consume() { await c.consume({ duration: '4s' }); }
`

// shown are the module's metrics in k6's own summary, each with what stands beside it.
func shown(r harness.Result) map[string]string {
	lines := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^\s+(broker_\w+|\{ ?\w+:[^}]*\})\.*: *(.*)$`).FindAllStringSubmatch(r.Stdout, -1) {
		lines[line[1]] = line[2]
	}
	return lines
}

// forOutputs are the metrics that say something only where an output keeps their tags.
func forOutputs(name string) bool {
	return strings.HasSuffix(name, "_quantile") || slices.Contains([]string{"broker_curve", "broker_marks", "broker_cpu"}, name)
}

// k6's summary has what a person reads: no metric whose values mix what its tags tell apart, and no zeros but those that are good news.
func TestTheSummaryIsForPeople(t *testing.T) {
	t.Parallel()
	r := harness.K6(t, nil, "run", harness.Script(t, summaryScript))
	lines := shown(r)
	for name, value := range lines {
		if forOutputs(name) {
			t.Errorf("%s is of use to outputs only", name)
		}
		good := []string{"broker_lost", "broker_duplicated", "broker_reordered", "broker_arrivals_unserved"}
		if strings.HasPrefix(value, "0 ") && strings.HasSuffix(value, "/s") && !slices.Contains(good, name) {
			t.Errorf("%s: %s", name, value)
		}
	}
	for _, name := range []string{
		"broker_sent", "broker_received", "broker_lost", "broker_duplicated", "broker_reordered", "broker_e2e_latency", "broker_delivery_wait",
		"broker_queue_wait", "broker_valid",
	} {
		if lines[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	if table := strings.Index(r.Stdout, "verdict: "); table < strings.Index(r.Stdout, "broker_valid.") {
		t.Error("the table does not follow the summary")
	}
	if t.Failed() {
		t.Log(r)
	}
}

// A threshold gets the metric that it names, whatever that is, and no other.
func TestThresholdsOnWhatOutputsGet(t *testing.T) {
	t.Parallel()
	r := harness.K6(t, []string{`THRESHOLDS={
  "broker_marks{mark:end}": ["count==1"], "broker_corrupted": ["count==0"]
}`}, "run", harness.Script(t, summaryScript))
	lines := shown(r)
	for _, name := range []string{"broker_marks", "broker_corrupted"} {
		if lines[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	if lines["broker_e2e_latency_quantile"] != "" || lines["broker_cpu"] != "" || lines["broker_drained"] != "" {
		t.Error("nobody asked for these")
	}
	if !kept(r) || strings.Contains(r.Stdout, "did not hold") {
		t.Error("a threshold saw nothing")
	}
	failed := harness.K6(t, []string{`THRESHOLDS={"broker_marks{mark:end}": ["count==2"]}`}, "run", harness.Script(t, summaryScript))
	if failed.Code != 99 {
		t.Error("a threshold on a mark decides nothing", failed)
	}
	if t.Failed() {
		t.Log(r)
	}
}

// However k6 is told of an output, the output gets everything.
func TestOutputsGetEverything(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]func(out, config string) (env, args []string){
		"by --out": func(out, _ string) ([]string, []string) { return nil, []string{"--out", "json=" + out} },
		"by -o":    func(out, _ string) ([]string, []string) { return nil, []string{"-qojson=" + out} },
		"by K6_OUT": func(out, _ string) ([]string, []string) {
			return []string{"K6_OUT=json=" + out}, nil
		},
		"by the config file": func(out, config string) ([]string, []string) {
			text, _ := json.Marshal(map[string]any{"out": []string{"json=" + out}})
			if err := os.WriteFile(config, text, 0o600); err != nil {
				t.Fatal(err)
			}
			return nil, []string{"--config", config}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out.json")
			env, args := told(out, filepath.Join(t.TempDir(), "config.json"))
			r := harness.K6(t, env, append(append([]string{"run"}, args...), harness.Script(t, summaryScript))...)
			got := metricsIn(t, out)
			for _, name := range []string{
				"broker_e2e_latency_quantile", "broker_curve", "broker_marks", "broker_cpu", "broker_undelivered", "broker_drained", "broker_lost",
			} {
				if !got[name] {
					t.Errorf("no %s", name)
				}
			}
			if t.Failed() {
				t.Log(r)
			}
		})
	}
}

// metricsIn names the metrics that k6's JSON output has points of.
func metricsIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	got := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var line struct{ Type, Metric string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Type == "Point" {
			got[line.Metric] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}
