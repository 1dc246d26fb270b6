package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func receives(f driver.Features) bool { return f.Start != 0 }

func answers(f driver.Features) bool { return f.Requests || f.Start != 0 && f.Headers }

// scenarios are those of the repository, each with what it needs of a driver.
var scenarios = map[string]func(driver.Features) bool{
	"backlog-drain":     func(f driver.Features) bool { return f.Start&driver.StartEarliest != 0 },
	"batch-concurrency": func(f driver.Features) bool { return f.Start == 0 && !f.Async }, // TestTheSweepOfAStore runs it
	"echo":              answers,
	"fan-out":           func(f driver.Features) bool { return f.Fanout },
	"one-at-a-time":     receives,
	"producer-consumer": receives,
	"quickstart":        receives,
	"request-reply":     answers,
	"senders-receivers": receives,
	"throughput":        receives,
}

// refusedInInit is the exit code of k6 where a script throws in the init context.
const refusedInInit = 107

// Every scenario runs on every broker, by its URL alone, and loses, repeats and reorders nothing. It is refused in the init context if and only if the driver lacks what it
// needs.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*.js")
	if err != nil || len(files) != len(scenarios) {
		t.Fatalf("%d of the scenarios %v are in the table: %v", len(scenarios), files, err)
	}
	// So little that each server keeps up with it while others have the machine.
	settings := []string{"DURATION=2s", "RATE=40", "MESSAGES=200", "WARMUP=1", "TIMEOUT=60s", "SUBSCRIBERS=3"}
	for broker, url := range harness.URLs(t) {
		address, err := driver.ParseURL(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		features := address.Driver.Features
		for name, runs := range scenarios {
			t.Run(broker+"/"+name, func(t *testing.T) {
				t.Parallel()
				// Two drivers of one server share its names: a list and a stream of Redis cannot have one.
				topic := strings.NewReplacer(" ", "-", "/", "-", "'", "").Replace(t.Name())
				env := append([]string{"BROKER_URL=" + url, "TOPIC=" + topic}, settings...)
				path := harness.Repo("scenarios", name+".js")
				if name == "quickstart" {
					path = shorter(t, path)
				}
				if !runs(features) {
					r := harness.K6(t, env, "run", "--quiet", path)
					if r.Code != refusedInInit || !strings.Contains(r.Stderr, address.Driver.Name+" cannot run this scenario, which needs") {
						t.Error(r)
					}
					return
				}
				r, s := harness.Scenario(t, path, env...)
				if len(s.Topics) == 0 {
					t.Fatal(r)
				}
				for _, topic := range s.Topics {
					if topic.Counts["sent"] == 0 || topic.Counts["confirmed"] != topic.Counts["sent"] || len(topic.Groups) == 0 {
						t.Errorf("%s: %v\n%v", topic.Topic, topic.Counts, r)
					}
					for _, g := range topic.Groups {
						if !complete(g, features.Order != driver.Unordered) {
							t.Errorf("%s: %+v\n%v", topic.Topic, g.Account, r)
						}
					}
				}
			})
		}
	}
}

// complete reports whether a group received all that was sent to it while it was there, and nothing else.
func complete(g summary.Group, ordered bool) bool {
	return g.Expected > 0 && g.Received == g.Expected && g.Lost+g.Missing+g.Undelivered+g.Uncertain+g.Duplicated+g.Unexpected+g.Drained == 0 && (!ordered || g.Reordered == 0)
}

// shorter is a copy of the quickstart with less load. A user changes the numbers in the script.
func shorter(t *testing.T, path string) string {
	t.Helper()
	const load = "rate: 1000, duration: '12s'"
	text := string(harness.Read(t, path))
	if !strings.Contains(text, load) {
		t.Fatalf("no %s in %s", load, path)
	}
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "lib"), os.DirFS(harness.Repo("scenarios/lib"))); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(folder, filepath.Base(path))
	if err := os.WriteFile(copied, []byte(strings.ReplaceAll(text, load, "rate: 40, duration: '2s'")), 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}
