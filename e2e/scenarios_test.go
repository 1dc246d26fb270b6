package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// urls are the brokers to run on: the embedded one and those that the environment names, one for each driver that receives. What runs on MongoDB's stand-in is
// not proven on MongoDB.
func urls(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"embedded JetStream": "embedded:", "embedded NATS": "embedded-nats:"}
	contained := contained(t)
	names := map[string]string{"mongodb's stand-in": "mongodb-standin"}
	for _, d := range driver.Drivers() {
		if d.Features.Start == 0 {
			continue // it only sends
		}
		names[d.Name] = d.Name
	}
	for broker, name := range names {
		env := "BROKER_URL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if url := os.Getenv(env); url != "" {
			all[broker] = url
		} else if os.Getenv("BROKER_REQUIRE") == "all" && !slices.Contains(contained, name) {
			t.Errorf("%s is not set", env)
		}
	}
	return all
}

// Every scenario runs as it is on every broker, by its URL alone, and keeps its thresholds. On a driver that lacks what it needs it
// says so in init.
func TestScenarios(t *testing.T) {
	scripts, err := filepath.Glob("../scenarios/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scenarios", err)
	}
	// So little that each server keeps up with it while others have the machine: RocketMQ holds one message of 200 back for 5 s where they are sent one at a time.
	short := []string{"DURATION=3s", "RATE=80", "MESSAGES=500", "WARMUP=1", "TIMEOUT=30s", "SUBSCRIBERS=3", "BROKER_REPORT_DIR=" + t.TempDir()}
	for broker, url := range urls(t) {
		for _, path := range scripts {
			t.Run(broker+"/"+strings.TrimSuffix(filepath.Base(path), ".js"), func(t *testing.T) {
				t.Parallel()
				// Two drivers of one server share its names: a list and a stream of Redis cannot have one.
				topic := strings.NewReplacer(" ", "-", "/", "-").Replace(t.Name())
				r := k6(t, append(short, "BROKER_URL="+url, "TOPIC="+topic), "run", "--quiet", path)
				if strings.Contains(r.stderr, "cannot run this scenario, which needs") {
					if strings.Contains(r.stdout, "verdict") {
						t.Errorf("it ran all the same:\n%v", r)
					}
					return
				}
				if raced && (r.code == 0 || r.code == 99) {
					return // it is several times slower, and need not keep its thresholds
				}
				if !r.kept() {
					t.Fatal(r)
				}
				wanted := []string{"verdict:", "lost 0", "duplicated 0"}
				if a, err := driver.ParseURL(url, nil); err == nil && a.Driver.Features.Order != driver.Unordered {
					wanted = append(wanted, "reordered 0")
				}
				for _, want := range wanted {
					if !strings.Contains(r.stdout, want) {
						t.Errorf("no %q in\n%s", want, r.stdout)
					}
				}
				for _, no := range []string{"unexpected", "drained"} { // consumers are ready first and end last
					if strings.Contains(r.stdout, no) {
						t.Errorf("%q in\n%s", no, r.stdout)
					}
				}
			})
		}
	}
}
