package e2e

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A consumer of 5 ms a message that gets 300 a second falls behind for as long as they come. How long its messages are under way by the
// script's own clock is what the result says, on every broker, wherever its client keeps what the consumer has not taken yet. Little's
// law holds: the latencies add up to what was under way, over time.
func TestASlowConsumerShowsAsTheScriptsClockSees(t *testing.T) {
	t.Parallel()
	for broker, url := range urls(t) {
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			topic := strings.ReplaceAll(t.Name(), "/", "-")
			o, r := runToOutcome(t, `
import { sleep } from 'k6';
import { Trend, Counter } from 'k6/metrics';
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer(__ENV.TOPIC);
const c = conn.consumer(__ENV.TOPIC, conn.features.groups ? { group: __ENV.TOPIC } : {}); // two drivers of one broker share its groups
const truth = new Trend('truth', true), said = new Trend('said', true), ages = new Counter('ages');
export const options = { summaryTrendStats: ['med', 'p(90)', 'max'], scenarios: {
  consume: { executor: 'consumers', exec: 'consume' },
  produce: { executor: 'open-arrival-rate', rate: 300, duration: '5s', preAllocatedVUs: 20, exec: 'produce' },
} };
export async function setup() { await conn.createTopic(__ENV.TOPIC); }
export async function produce() { await p.send({ body: String(broker.arrival().due) }); }
const seen = new Set(); // a message whose lease is over, because the machine is slow, comes again
export async function consume() {
  for (const m of await c.receive({ max: 1, wait: '500ms' })) {
    const age = Date.now() - Number(m.text());
    if (!seen.has(m.text())) {
      truth.add(age);
      ages.add(age);
      said.add(m.latency);
    }
    seen.add(m.text());
    sleep(0.005);
    await c.ack(m);
  }
}
`, "BROKER_URL="+url, "TOPIC="+topic)
			if len(o.Result.Topics) != 1 || len(o.Result.Topics[0].Groups) != 1 {
				t.Fatal(r)
			}
			top := o.Result.Topics[0]
			g := top.Groups[0]
			if g.Received != 1500 || g.Drained != 0 || g.Lost != 0 {
				t.Fatalf("%+v\n%v", g, r)
			}
			truth := o.Metrics["truth"].Values
			if truth["max"] < 1000 {
				t.Errorf("the consumer was not slow: %v", truth)
			}
			for stat, want := range truth {
				if got := o.Metrics["said"].Values[stat]; math.Abs(got-want) > 0.05*want+50 {
					t.Errorf("message.latency: %s is %.0f ms, by the script's clock %.0f", stat, got, want)
				}
			}
			for q, want := range map[float64]float64{0.5: truth["med"], 0.9: truth["p(90)"]} {
				if got := top.Trends["e2e_latency"].Milliseconds(q); math.Abs(got-want) > 0.05*want+20 {
					t.Errorf("p%v is %.0f ms, by the script's clock %.0f", 100*q, got, want)
				}
			}
			underWay, before := 0.0, 0.0 // in message seconds; what is outstanding is known at the end of each second
			for _, p := range top.History {
				underWay += (before + float64(p.Outstanding)) / 2 * p.Seconds
				before = float64(p.Outstanding)
			}
			// They are under way once they are confirmed.
			before = float64(g.Received) * top.Trends["publish_latency"].Mean() / 1e9
			if sum := o.Metrics["ages"].Values["count"]/1000 - before; math.Abs(underWay-sum) > 0.1*sum {
				t.Errorf("Little's law: %.0f message seconds under way, and latencies of %.0f s", underWay, sum)
			}
		})
	}
}

// VUs that are through leave their group at once: what they held goes to those who stay, and nothing waits for the end of the test.
// The script's own counts are the result's.
func TestConsumersLeaveWithTheirScenario(t *testing.T) {
	t.Parallel()
	for broker, url := range urls(t) {
		if a, err := driver.ParseURL(url, nil); err != nil || a.Driver.Features.Deliver != driver.AtLeastOnce {
			continue // it keeps nothing for those who are not there
		}
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			topic := strings.ReplaceAll(t.Name(), "/", "-")
			o, r := runToOutcome(t, `
import { Counter } from 'k6/metrics';
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer(__ENV.TOPIC);
const c = conn.consumer(__ENV.TOPIC, conn.features.groups ? { group: __ENV.TOPIC } : {}); // two drivers of one broker share its groups
const got = new Counter('got');
export const options = { scenarios: {
  early: { executor: 'constant-vus', vus: 3, duration: '8s', exec: 'consume', gracefulStop: '2s' },
  ramp: { executor: 'ramping-vus', startVUs: 3, stages: [{ duration: '8s', target: 3 }, { duration: '2s', target: 1 }, { duration: '18s', target: 1 }], exec: 'consume', gracefulRampDown: '1s' },
  produce: { executor: 'open-arrival-rate', rate: 100, duration: '10s', startTime: '5s', preAllocatedVUs: 20, exec: 'produce' },
} };
export async function setup() { await conn.createTopic(__ENV.TOPIC); await c.ready(); }
export async function produce() { await p.send('x'); }
export async function consume() {
  const batch = await c.receive({ max: 10, wait: '300ms' });
  await c.ack(batch);
  got.add(batch.length);
}
`, "BROKER_URL="+url, "TOPIC="+topic)
			if len(o.Result.Topics) != 1 || len(o.Result.Topics[0].Groups) != 1 {
				t.Fatal(r)
			}
			g := o.Result.Topics[0].Groups[0]
			if script := o.Metrics["got"].Values["count"]; float64(g.Received) != script || o.Metrics["broker_received"].Values["count"] < script {
				t.Errorf("the script got %v, the result says %+v", script, g)
			}
			if g.Expected != 1000 || g.Received != g.Expected || g.Drained != 0 || g.Lost != 0 {
				t.Fatalf("%+v\n%v", g, r)
			}
			if p99 := o.Result.Topics[0].Trends["e2e_latency"].Milliseconds(0.99); p99 > 10_000 {
				t.Errorf("messages waited for consumers that had gone: p99 %v ms", p99)
			}
		})
	}
}

// A teardown that deletes the topic loses nothing, fails at nothing and waits for nothing.
func TestATopicThatTeardownDeletes(t *testing.T) {
	t.Parallel()
	o, r := runToOutcome(t, `
const conn = broker.connect('embedded:');
const p = conn.producer('gone');
const c = conn.consumer('gone', { group: 'g' });
export const options = { scenarios: {
  consume: { executor: 'constant-vus', vus: 2, duration: '4s', exec: 'consume' },
  produce: { executor: 'constant-arrival-rate', rate: 200, duration: '4s', startTime: '1s', preAllocatedVUs: 20, exec: 'produce' },
} };
export async function setup() { await conn.createTopic('gone'); }
export async function produce() { await p.send('x'); }
export async function consume() { await c.ack(await c.receive({ max: 10, wait: '300ms' })); }
export async function teardown() { await conn.deleteTopic('gone'); }
`)
	g := o.Result.Topics[0].Groups[0]
	if g.Lost != 0 || g.Undelivered != 0 || g.Uncertain != 0 || g.Drained == 0 || len(o.Result.Topics[0].Errors) != 0 {
		t.Errorf("%+v %+v\n%v", g, o.Result.Topics[0].Errors, r)
	}
	if o.Result.Verdict.Valid {
		t.Errorf("a second of messages reached no consumer, and the run is valid\n%v", r)
	}
}

// A test that was cut short says so, whatever cut it.
func TestATestThatEndsEarlyIsNotValid(t *testing.T) {
	for name, c := range map[string]struct{ text, reason string }{
		"abort": {`
import exec from 'k6/execution';
export async function setup() { await conn.createTopic('early'); }
export default async function () { await p.send('x'); if (exec.scenario.iterationInTest == 20) exec.test.abort('enough'); }
`, "interrupted or aborted"},
		"setup throws": {`
export async function setup() { await conn.createTopic('early'); await p.send('x'); throw new Error('no'); }
export default function () {}
`, "no iteration ever ran"},
		"nothing is sent": {`
export async function setup() { await conn.createTopic('early'); }
export default function () {}
`, "nothing was measured"},
	} {
		t.Run(name, func(t *testing.T) {
			r := k6(t, nil, "run", "--quiet", "--iterations", "100", script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('early');
`+c.text))
			if !strings.Contains(r.stdout, "verdict: NOT VALID") || !strings.Contains(r.stdout, c.reason) {
				t.Error(r)
			}
		})
	}
}

// Ctrl-C ends the reading on at the end of a test, which says what it waits for and how long.
func TestInterruptEndsTheDrain(t *testing.T) {
	t.Parallel()
	p := start(t, drainPorts, "nats")
	paused := make(chan struct{})
	var once atomic.Bool
	pulls := levers(t, map[string]func() error{"fault": func() error {
		err := p.try("pause", "nats")
		if once.CompareAndSwap(false, true) {
			close(paused)
		}
		return err
	}})
	cmd := exec.Command(k6Path, "run", "--quiet", script(t, "import broker from 'k6/x/broker';\n"+pull+`
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '5m' });
const p = conn.producer('drain'), c = conn.consumer('drain', { group: 'g' });
export async function setup() { await conn.createTopic('drain'); }
export default async function () {
  await c.ready();
  await p.send('x');
  await c.ack(await c.receive());
  await p.produce({ count: 100 });
  pull('fault');
}
`))
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "BROKER_REPORT=off", "BROKER_URL="+p.broker("url", "nats", "nats-jetstream"), pulls)
	stderr := &watched{want: "reading on for up to 5m0s (Ctrl-C ends that)", seen: make(chan struct{})}
	stdout := &watched{seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for _, wait := range []<-chan struct{}{paused, stderr.seen} {
		select {
		case <-wait:
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s\n%s", err, stdout, stderr)
		case <-time.After(2 * time.Minute):
			_ = cmd.Process.Kill()
			t.Fatalf("it never came to drain\n%s\n%s", stdout, stderr)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		noRace(t, err, stderr.String())
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatalf("it drained on\n%s\n%s", stdout, stderr)
	}
	if !strings.Contains(stdout.String(), "uncertain 100") {
		t.Errorf("a broker that does not answer cannot say what it has:\n%s", stdout)
	}
}
