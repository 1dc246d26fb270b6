package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// beginning is a script of which each process has a subscriber that takes DELAY to come, and a part of the arrivals. Each says when the schedule began, by what
// its first arrival knows.
const beginning = `
import broker from 'k6/x/broker';
const { BROKER_URL, TOPIC, DELAY } = __ENV;
const conn = broker.connect(BROKER_URL);
const producer = conn.producer(TOPIC);
const consumer = conn.consumer(TOPIC);
const rate = 100;
export const options = {
  scenarios: {
    consume: { executor: 'consumers', vus: 2, exec: 'consume' },
    produce: { executor: 'open-arrival-rate', rate, duration: '4s', preAllocatedVUs: 20, exec: 'produce' },
  },
};
export async function setup() { await conn.createTopic(TOPIC); }
let said = false;
export async function produce() {
  const { due, index } = broker.arrival();
  if (!said) console.log('began at ' + (due - index * 1000 / rate).toFixed(3));
  said = true;
  await producer.send({ body: __ENV.BROKER_REPORT_NAME + ' n' + index });
}
let late = Number(DELAY || 0);
export async function consume() {
  if (late) await new Promise((done) => setTimeout(done, late));
  late = 0;
  await consumer.ack(await consumer.receive({ max: 100, wait: '500ms' }));
}
export { handleSummary } from 'k6/x/broker';
`

// pair is two processes of a test, of which the second begins after the first.
type pair struct {
	t     *testing.T
	dir   string
	topic string
	ended [2]harness.Result
	whole func() (string, *summary.Summary)
}

// apart is the setting of processes that have no coordinator.
const apart = "BROKER_COORDINATOR="

// pairUp runs two binaries with half of a script each.
func pairUp(t *testing.T, url string, binaries [2][]string, envs [2][]string) *pair {
	t.Helper()
	return pairOf(t, beginning, url, time.Second, binaries, envs)
}

// pairOf does so with any script. The second is started later than the first, as where a starter takes its time.
func pairOf(t *testing.T, text, url string, later time.Duration, binaries [2][]string, envs [2][]string) *pair {
	t.Helper()
	topic := fmt.Sprintf("pair-%d", time.Now().UnixNano())
	p := &pair{t: t, dir: t.TempDir(), topic: topic}
	path := harness.Script(t, text)
	p.whole, url = p.merge, "BROKER_URL="+url
	shared := []string{url, "TOPIC=" + topic, "BROKER_RUN=" + topic, "BROKER_REPORT_DIR=" + p.dir}
	if !slices.Contains(envs[0], apart) {
		c := coordinate(t, 2, "--allow-invalid")
		shared = append(shared, c.env())
		p.whole = func() (string, *summary.Summary) {
			r, whole := c.whole(t)
			return r.Stdout, whole
		}
	}
	var running sync.WaitGroup
	for i, segment := range []string{"0:1/2", "1/2:1"} {
		if i > 0 {
			time.Sleep(later)
		}
		running.Go(func() {
			env := slices.Concat(shared, []string{fmt.Sprint("BROKER_REPORT_NAME=p", i+1)}, envs[i])
			args := append(binaries[i][1:], "run", "--address", "", "--execution-segment", segment, "--execution-segment-sequence", "0,1/2,1", path)
			p.ended[i] = harness.Run(t, binaries[i][0], env, args...)
		})
	}
	running.Wait()
	return p
}

func (p *pair) of(process int) *summary.Summary {
	p.t.Helper()
	s, err := summary.Read(filepath.Join(p.dir, fmt.Sprint("p", process)))
	if err != nil {
		p.t.Fatal(err, p.ended[process-1])
	}
	return s
}

// merge is what both are together, and what is said of it.
func (p *pair) merge() (string, *summary.Summary) {
	p.t.Helper()
	out := filepath.Join(p.dir, "whole")
	r := harness.K6(p.t, nil, "x", "broker", "merge", "--processes", "2", "--allow-invalid", "-o", out, filepath.Join(p.dir, "p1"), filepath.Join(p.dir, "p2"))
	whole, err := summary.Read(out)
	if err != nil {
		p.t.Fatal(err, r)
	}
	return strings.Join(strings.Fields(r.Stdout), " "), whole
}

var beganAt = regexp.MustCompile(`began at ([0-9.]+)`)

// began is when the schedule of a process began, in ms.
func (p *pair) began(process int) float64 {
	p.t.Helper()
	r := p.ended[process-1]
	found := beganAt.FindStringSubmatch(r.Stdout + r.Stderr)
	if found == nil {
		p.t.Fatal(r)
	}
	at, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return at
}

// Two processes of which one begins later, and whose consumer takes its time: nothing is sent before that is there, even where the broker keeps nothing for
// who comes later, and both schedules begin at one time.
func TestProcessesBeginTogether(t *testing.T) {
	t.Parallel()
	for name, watch := range map[string]func(*testing.T, string) func(topic string) map[string]time.Time{"BROKER_URL_NATS": watchNATS, "BROKER_URL_KAFKA": readKafka} {
		t.Run(name, func(t *testing.T) {
			url := harness.URL(t, name)
			firsts := watch(t, url)
			p := pairUp(t, url, [2][]string{{harness.Binary}, {harness.Binary}}, [2][]string{{}, {"DELAY=2500"}})
			for process := 1; process <= 2; process++ {
				s := p.of(process)
				if n := s.Topics[0].Counts["received"]; n != 400 || len(s.Missing) != 0 || s.Clock == nil {
					t.Errorf("process %d received %d of 400, without %q\n%v", process, n, s.Missing, p.ended[process-1])
				}
			}
			if by := p.began(2) - p.began(1); by > 5 || by < -5 {
				t.Errorf("they began %v ms apart", by)
			}
			// What they have agreed on is what they did: one of them is a second late, and its consumer more than two.
			came := firsts(p.topic)
			if by := came["p2"].Sub(came["p1"]).Abs(); len(came) != 2 || by > 500*time.Millisecond {
				t.Errorf("the first messages were sent %v apart: %v", by, came)
			}
			if said, whole := p.whole(); len(whole.Clocks) != 1 || !whole.Clocks[0].Same || whole.Topics[0].Groups[0].Lost != 0 || whole.Verdict.Has("clocks", "") {
				t.Errorf("%+v\n%s", whole.Clocks, said)
			}
		})
	}
}

// watchNATS hears, as a client of its own, what is sent from now on, and gives when the first message of each process came, by its body.
func watchNATS(t *testing.T, url string) func(topic string) map[string]time.Time {
	t.Helper()
	client, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	var mu sync.Mutex
	came := map[string]map[string]time.Time{}
	if _, err := client.Subscribe(">", func(m *nats.Msg) {
		now := time.Now()
		body, _, _ := strings.Cut(string(m.Data), " ")
		mu.Lock()
		defer mu.Unlock()
		if body != "p1" && body != "p2" {
			return
		}
		if came[m.Subject] == nil {
			came[m.Subject] = map[string]time.Time{}
		}
		if _, again := came[m.Subject][body]; !again {
			came[m.Subject][body] = now
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := client.Flush(); err != nil {
		t.Fatal(err)
	}
	return func(topic string) map[string]time.Time {
		mu.Lock()
		defer mu.Unlock()
		return came[topic]
	}
}

// readKafka reads, as a client of its own, what was sent, and gives the time that the first record of each process bears, by its body.
func readKafka(t *testing.T, url string) func(topic string) map[string]time.Time {
	t.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(topic string) map[string]time.Time {
		_, hosts, _ := strings.Cut(address.String(), "://")
		client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(hosts, ",")...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		came := map[string]time.Time{}
		for n := 0; n < 400; {
			fetched := client.PollFetches(ctx)
			if err := fetched.Err0(); err != nil {
				t.Fatalf("%d of 400 records: %v", n, err)
			}
			fetched.EachRecord(func(r *kgo.Record) {
				n++
				body, _, _ := strings.Cut(string(r.Value), " ")
				if at, again := came[body]; !again || r.Timestamp.Before(at) {
					came[body] = r.Timestamp
				}
			})
		}
		return came
	}
}

// skewed is a k6 whose clock is ahead, as SKEW says, and a machine of its own as far as it can tell: the command that runs it.
func skewed(t *testing.T) []string {
	t.Helper()
	source, err := filepath.Abs("testdata/skew.go")
	if err != nil {
		t.Fatal(err)
	}
	over, err := filepath.Abs(harness.Repo("cmd/k6/skew.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{over: source}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "k6")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./cmd/k6")
	build.Dir = harness.Repo()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, elsewhere := range [][]string{{"unshare", "--time", "--monotonic", "5000"}, {"unshare", "--user", "--map-root-user", "--time", "--monotonic", "5000"}} {
		if exec.CommandContext(t.Context(), elsewhere[0], append(elsewhere[1:], "true")...).Run() == nil {
			return append(elsewhere, binary)
		}
	}
	t.Skip("this machine has no time namespaces for a test: all processes on it have one clock")
	return nil
}

// The offset of a clock that is off by a second, or by nothing, is within the bound that was measured, through real brokers; that it is off is said with how
// much, and makes the run not valid.
func TestTheClocksOfProcesses(t *testing.T) {
	t.Parallel()
	far := skewed(t)
	for _, name := range []string{"BROKER_URL_NATS_JETSTREAM", "BROKER_URL_KAFKA"} {
		for _, ahead := range []time.Duration{0, time.Second, -time.Second} {
			t.Run(fmt.Sprint(name, " ", ahead), func(t *testing.T) {
				p := pairUp(t, harness.URL(t, name), [2][]string{{harness.Binary}, far}, [2][]string{{}, {"SKEW=" + ahead.String()}})
				said, whole := p.whole()
				if len(whole.Clocks) != 1 {
					t.Fatalf("%+v\n%v", whole.Clocks, p.ended)
				}
				c, truth := whole.Clocks[0], int64(ahead)
				if strings.HasSuffix(c.Of, "(p1)") { // either may have begun first, by its clock
					truth = -truth
				}
				if off := c.Offset - truth; c.Same || max(off, -off) > c.Bound || c.Bound > int64(200*time.Millisecond) {
					t.Errorf("it is %v ahead, and %+v", time.Duration(truth), c)
				}
				v := whole.Verdict
				negative, explained := v.Find("clocks", "negative")
				switch {
				case ahead == 0 && (v.Has("clocks", "wrong") || whole.Topics[0].Counts["negative"] != 0 || !v.Has("clocks", "apart")):
					t.Errorf("%+v\n%s", v, said)
				case ahead != 0 && (!v.Has("clocks", "wrong") || !explained || negative.Values["clocks"] == nil):
					t.Errorf("%+v\n%s", v, said)
				}
			})
		}
	}
}
