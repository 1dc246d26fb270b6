package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// phased is a load with a phase that comes back.
const phased = `
import broker from 'k6/x/broker';
const { BROKER_URL, TOPIC } = __ENV;
const conn = broker.connect(BROKER_URL);
const producer = conn.producer(TOPIC);
const consumer = conn.consumer(TOPIC, { group: 'workers', start: 'earliest' });
export const options = {
  scenarios: { consume: { executor: 'consumers', exec: 'consume' }, produce: { executor: 'producers', exec: 'produce' } },
};
export async function setup() { await conn.createTopic(TOPIC); }
export async function produce() {
  for (const [phase, rate] of [['a', 100], ['b', 400], ['a', 100]]) {
    broker.phase(phase);
    await producer.produce({ rate, duration: '2s' });
  }
}
export async function consume() { await consumer.consume({}); }
export { handleSummary } from 'k6/x/broker';
`

// Three processes with a coordinator are one test: each count is the sum of theirs, in all and in each phase.
func TestCoordinator_ThreeProcesses_CountsAreSums(t *testing.T) {
	t.Parallel()
	script := harness.Script(t, phased)
	for _, broker := range []string{"BROKER_URL_NATS_JETSTREAM", "BROKER_URL_KAFKA"} {
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			url := harness.URL(t, broker)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := listener.Addr().String()
			_ = listener.Close()
			topic, dir := fmt.Sprintf("coordinator-%d", time.Now().UnixNano()), t.TempDir()
			out := filepath.Join(dir, "whole")
			var all sync.WaitGroup
			for i, segment := range []string{"0:1/3", "1/3:2/3", "2/3:1"} {
				all.Go(func() {
					env := harness.Settings(filepath.Join(dir, "own"), fmt.Sprint("p", i+1), "BROKER_URL="+url, "TOPIC="+topic, "BROKER_COORDINATOR=http://"+address, "BROKER_COORDINATOR_TOKEN=hush")
					r := harness.K6(t, env, "run", "--quiet", "--address", "", "--execution-segment", segment, "--execution-segment-sequence", "0,1/3,2/3,1", script)
					if r.Code != 0 {
						t.Error(r)
					}
				})
			}
			r := harness.K6(t, []string{"BROKER_COORDINATOR_TOKEN=hush"}, "x", "broker", "coordinator", "--processes", "3", "--listen", address, "-o", out, "--timeout", "30s", "--allow-invalid", "--fail-if", "lost > 0")
			all.Wait()
			if r.Code != 0 {
				t.Error(r)
			}
			whole, err := summary.Read(out)
			if err != nil {
				t.Fatal(err)
			}
			counts, phases := map[string]int64{}, map[string]int64{}
			for i := range 3 {
				part, err := summary.Read(filepath.Join(out+"-processes", fmt.Sprint(i+1)))
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"due", "sent", "confirmed", "received", "bytes_sent"} {
					counts[name] += part.Topics[0].Counts[name]
				}
				for phase, window := range part.Topics[0].Phases {
					phases[phase] += window.Counts["sent"]
				}
			}
			topics := whole.Topics
			if len(topics) != 1 || counts["sent"] != 1200 || topics[0].Groups[0].Lost != 0 || topics[0].Groups[0].Received != 1200 {
				t.Fatalf("%v, %+v\n%v", counts, topics, r)
			}
			for name, n := range counts {
				if topics[0].Counts[name] != n {
					t.Errorf("%s: %d, and the processes have %d", name, topics[0].Counts[name], n)
				}
			}
			for _, phase := range []string{"a", "b"} {
				if n := topics[0].Phases[phase].Counts["sent"]; n != phases[phase] || n == 0 {
					t.Errorf("phase %s: %d were sent, and the processes have %d", phase, n, phases[phase])
				}
			}
			if len(whole.Clocks) != 3 || whole.Verdict.Has("clocks", "not-compared") || whole.Verdict.Has("process-missing", "") {
				t.Errorf("%+v, %+v", whole.Clocks, whole.Verdict)
			}
		})
	}
}
