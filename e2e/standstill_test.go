package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// A generator that stands still is late by its own fault, with every send of every iteration that was due meanwhile: neither the two
// VUs that then have a queue to work off nor a broker that answers at once excuse any of it.
func TestAGeneratorThatStandsStill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcome.json")
	cmd := exec.CommandContext(t.Context(), k6Path, "run", "--quiet", script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('standstill');
export const options = { scenarios: { s: { executor: 'open-arrival-rate', rate: 300, duration: '6s', preAllocatedVUs: 2 } } };
export async function setup() { await conn.createTopic('standstill', { storage: 'memory' }); }
export default async function () { await p.send('x'); await p.send('y'); }
`+leaveOutcome))
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "OUTCOME="+path)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const pause = 250 * time.Millisecond
	time.Sleep(3 * time.Second) // some load is under way by then; how much does not matter
	for range 4 {
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	var o outcome
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &o) != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	read := func(trend string) *summary.Histogram {
		h := o.Result.Topics[0].Trends[trend]
		t.Logf("%s: p50 %v, p90 %v, max %v", trend, time.Duration(h.Quantile(.5)), time.Duration(h.Quantile(.9)), time.Duration(h.Max))
		return h
	}
	late, own := read("schedule_lag"), read("generator_lag")
	if late.Count != 3600 || own.Count != late.Count || late.Max < int64(pause)/2 {
		t.Fatalf("%d sends, at most %v late", late.Count, time.Duration(late.Max))
	}
	if own.Mean() < 0.95*late.Mean() {
		t.Errorf("sends were late by %v on average, of which %v is taken for the generator's own",
			time.Duration(late.Mean()), time.Duration(own.Mean()))
	}
}

// A broker is silent for 2 s, and meanwhile the generator stands still for 70 ms of each 150. What then waits for a VU waits for the broker: no
// standstill made it wait longer, but for one in which a message may have left.
func TestAGeneratorThatStandsStillWhileTheBrokerIsSilent(t *testing.T) {
	url := external(t, "BROKER_URL_NATS_JETSTREAM")
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, host, _ := strings.Cut(address.String(), "://")
	link, err := proxy.Listen(host)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close() //nolint:errcheck // the test is over
	path := filepath.Join(t.TempDir(), "outcome.json")
	cmd := exec.CommandContext(t.Context(), k6Path, "run", "--quiet", script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer('silence');
export const options = { scenarios: { s: { executor: 'open-arrival-rate', rate: 100, duration: '9s', preAllocatedVUs: 20 } } };
export async function setup() { await conn.createTopic('silence', { storage: 'memory' }); }
export default async function () { await p.send('x'); }
`+leaveOutcome))
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "OUTCOME="+path, "BROKER_URL="+strings.Replace(url, host, link.Addr(), 1))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second) // some load is under way by then; how much does not matter
	link.Freeze()
	silent := time.Now()
	var stood time.Duration
	for time.Since(silent) < 1700*time.Millisecond {
		begin := time.Now()
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(70 * time.Millisecond)
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		stood += time.Since(begin)
		time.Sleep(80 * time.Millisecond)
	}
	time.Sleep(2*time.Second - time.Since(silent))
	link.Thaw()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	var o outcome
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &o) != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	late, own := o.Result.Topics[0].Trends["schedule_lag"], o.Result.Topics[0].Trends["generator_lag"]
	t.Logf("it stood for %v; late at most %v, by the generator's own fault %v", stood, time.Duration(late.Max), time.Duration(own.Max))
	if late.Count != 900 || late.Max < int64(time.Second) {
		t.Fatalf("%d sends, at most %v late", late.Count, time.Duration(late.Max))
	}
	if own.Max > int64(stood/2) {
		t.Errorf("of %v, %v are taken for the generator's own, which stood for %v in all", time.Duration(late.Max), time.Duration(own.Max), stood)
	}
}
