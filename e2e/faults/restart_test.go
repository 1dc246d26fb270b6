package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// A server killed under load and started again with its data: errors are counted by kind, those who send and who receive go on with the
// server that is back, and nothing that was confirmed is lost.
func TestAServerThatIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	p := start(t, restartPorts, "nats", "postgres", "artemis", "pulsar", "rocketmq")
	for _, c := range []struct{ name, driver, connect, produce, consume, topic string }{
		{name: "nats", driver: "nats-jetstream", produce: "ackTimeout: '2s'", consume: "group: 'workers', ackWait: '3s'", topic: "storage: 'file'"},
		{name: "postgres", driver: "postgres", consume: "lease: '3s'"},
		{name: "artemis", driver: "amqp1"},
		// These two have messages wait for a server that is away, for longer by default than it takes to start.
		{name: "pulsar", driver: "pulsar", produce: "sendTimeout: '4s'", consume: "group: 'workers'"},
		{name: "rocketmq", driver: "rocketmq", connect: "requestTimeout: '2s'", consume: "group: 'workers'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pulls := harness.Levers(t, map[string]func() error{
				"fault": func() error { return errors.Join(p.try("kill", c.name), p.try("restart", c.name)) },
			})
			o, r := harness.RunToOutcome(t, harness.Pull+fmt.Sprintf(`
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '60s', %s });
const p = conn.producer('killed', { %s });
const c = conn.consumer('killed', { %s });
export const options = { scenarios: {
  consume: { executor: 'consumers', exec: 'consume' },
  produce: { executor: 'producers', exec: 'produce' },
} };
export async function setup() { await conn.createTopic('killed', { %s }); }
export async function produce() {
  await p.produce({ rate: 1000, duration: '2s' });
  const back = new Promise((resolve) => setTimeout(() => resolve(pull('fault')), 1000));
  await p.produce({ rate: 1000, duration: '3s' });
  await back;
  await p.produce({ rate: 1000, duration: '8s' });
}
export async function consume() { await c.consume(); }
`, c.connect, c.produce, c.consume, c.topic), "BROKER_URL="+p.broker("url", c.name, c.driver), pulls)
			b := addsUp(t, o, r, 13_000)
			// Of what was sent before the server was back no more than 5000 can have been confirmed.
			if b.failed == 0 || b.confirmed < 6500 {
				t.Errorf("failed %d, confirmed %d: was the server away, and did those who send go on when it was back?\n%v", b.failed, b.confirmed, r)
			}
			if b.drained != 0 {
				t.Errorf("%d were received at the end only: did the consumer go on when the server was back?\n%v", b.drained, r)
			}
			b.nothingLost(t, r)
		})
	}
}

// A Kafka that is killed has lost what it was sent without confirmation and had not read. Its consumer leaves while it is down, and has committed only
// a part of what it received: what is lost is not counted as still at the broker.
func TestAcksNone_ConsumerLeavesWhileTheBrokerIsDown_LossesAreNotUndelivered(t *testing.T) {
	t.Parallel()
	p := start(t, noAcksPorts, "kafka")
	url := p.broker("url", "kafka", "kafka")
	levers := map[string]func() error{}
	for _, verb := range []string{"pause", "kill", "restart"} {
		levers[verb] = func() error { return p.try(verb, "kafka") }
	}
	o, r := harness.RunToOutcome(t, harness.Pull+`
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer('unconfirmed', { acks: 'none' });
const c = conn.consumer('unconfirmed', { group: 'workers' });
const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const options = { scenarios: { all: { executor: 'per-vu-iterations' } } };
export async function setup() { await conn.createTopic('unconfirmed'); }
export default async function () {
  await c.ready();
  const produced = p.produce({ rate: 500, duration: '8s' });
  const consumed = c.consume({ duration: '5500ms' });
  await after(3500);
  pull('pause');
  await after(1000); // what is sent meanwhile is lost
  pull('kill');
  await consumed;
  await c.close();
  pull('restart');
  await produced;
}
`, "BROKER_URL="+url, harness.Levers(t, levers))
	b := addsUp(t, o, r, 4000)
	var end, committed int64
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := askKafka(ctx, url, func(admin *kadm.Client) error {
		ends, err := admin.ListEndOffsets(ctx, "unconfirmed")
		if err != nil {
			return err
		}
		last, _ := ends.Lookup("unconfirmed", 0)
		end = last.Offset
		offsets, err := admin.FetchOffsets(ctx, "workers")
		if at, ok := offsets.Lookup("unconfirmed", 0); ok {
			committed = at.At
		}
		return errors.Join(err, last.Err)
	}); err != nil {
		t.Fatal(err)
	}
	there, gone := uint64(end)-b.received, 4000-uint64(end)
	t.Logf("the log has %d, of which %d are committed", end, committed)
	if gone == 0 || there == 0 || uint64(committed) >= b.received {
		t.Fatalf("%d of 4000 are in the log, %d committed, and %d were received\n%v", end, committed, b.received, r)
	}
	if b.undelivered > there || b.lost > gone {
		t.Errorf("lost %d, undelivered %d; the log lacks %d and has %d that were not received\n%v", b.lost, b.undelivered, gone, there, r)
	}
}

// A primary that is killed under load, and whose standby takes its place: it has all that was confirmed. A PostgreSQL says that its commits wait for the
// standby, and what is sent to that alone proves less, so it fails; an Artemis tells its clients nothing of its backup, and the run goes on.
func TestAStandbyTakesThePlaceOfItsPrimary(t *testing.T) {
	t.Parallel()
	p := start(t, restartPorts, "postgres-replica", "artemis-replica")
	for _, c := range []struct {
		name, options, proof string
		seconds, most        int64 // of the run, and how many of a second's 500 messages are confirmed
		instead              func(ctx context.Context, standby string) error
	}{
		{"postgres-replica", "{ lease: '3s', prefetch: 20 }", "(replicated: ", 10, 250, promote},
		{"artemis-replica", "{}", "(accepted: ", 20, 500, func(context.Context, string) error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address := p.broker("url", c.name)
			_, standby, _ := strings.Cut(address, ",")
			pulls := harness.Levers(t, map[string]func() error{
				"fault": func() error { return errors.Join(p.try("kill", c.name+"/primary"), c.instead(t.Context(), standby)) },
			})
			o, r := harness.RunToOutcome(t, harness.Pull+`
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '30s' });
const p = conn.producer('killed');
const c = conn.consumer('killed', `+c.options+`);
export async function setup() { await conn.createTopic('killed'); }
`+steady, fmt.Sprint("SECONDS=", c.seconds), "RATE=500", "WORK=1ms", "BROKER_URL="+address, pulls)
			b := addsUp(t, o, r, 500*c.seconds)
			if !strings.Contains(r.Stdout, c.proof) {
				t.Errorf("confirmations did not prove %s\n%v", c.proof, r)
			}
			// A quarter of the run was over when the primary was killed.
			if b.failed == 0 || b.confirmed < 100*c.seconds || b.confirmed > c.most*c.seconds {
				t.Errorf("failed %d, confirmed %d\n%v", b.failed, b.confirmed, r)
			}
			b.nothingLost(t, r)
		})
	}
}

// promote makes a primary of a standby.
func promote(ctx context.Context, standby string) error {
	c, err := pgx.Connect(ctx, "postgres://postgres@"+standby)
	if err != nil {
		return err
	}
	var done bool
	err = c.QueryRow(ctx, "SELECT pg_promote()").Scan(&done)
	if err == nil && !done {
		err = errors.New("the standby was not promoted within its 60 s")
	}
	return errors.Join(err, c.Close(context.WithoutCancel(ctx)))
}
