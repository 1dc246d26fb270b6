package processes

import (
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// sparse is a script of which each process has a subscriber, and a message a second.
const sparse = `
import broker from 'k6/x/broker';
const { BROKER_URL, TOPIC } = __ENV;
const conn = broker.connect(BROKER_URL);
const producer = conn.producer(TOPIC);
const consumer = conn.consumer(TOPIC);
export const options = {
  scenarios: {
    consume: { executor: 'consumers', vus: 2, exec: 'consume' },
    produce: { executor: 'open-arrival-rate', rate: 2, duration: '4s', preAllocatedVUs: 2, exec: 'produce' },
  },
};
export async function produce() { await producer.send('x'); }
export async function consume() { await consumer.consume({}); }
export { handleSummary } from 'k6/x/broker';
`

// Processes without a coordinator end one after the other. What the later one sends when the consumers of the first have left, of a broker that keeps
// nothing, is noted, and the whole is not valid because they began apart; those with a coordinator have no such messages.
func TestWhatIsSentWhenTheConsumersOfOthersHaveLeft(t *testing.T) {
	t.Parallel()
	for env, late := range map[string]bool{apart: true, "COORDINATED=yes": false} {
		for _, broker := range []string{"BROKER_URL_NATS", "BROKER_URL_REDIS_PUBSUB"} {
			t.Run(fmt.Sprint(late, " ", broker), func(t *testing.T) {
				t.Parallel()
				p := pairOf(t, sparse, harness.URL(t, broker), 3*time.Second, [2][]string{{harness.Binary}, {harness.Binary}}, [2][]string{{env}, {env}})
				said, whole := p.whole()
				if len(whole.Topics) != 1 || len(whole.Topics[0].Groups) != 1 {
					t.Fatalf("%+v\n%s", whole.Topics, said)
				}
				a := whole.Topics[0].Groups[0].Account
				named := whole.Verdict.Has("no-consumer", "away")
				if named != late || a.Lost != 0 || a.Uncertain != 0 || a.Expected != a.Received+a.Drained || !late && a.Received != 16 {
					t.Errorf("named %v: %+v\n%s", named, a, said)
				}
				if whole.Verdict.Valid && late {
					t.Error(said)
				}
			})
		}
	}
}
