package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A server killed under load and started again with its data: errors are counted by kind, the run goes on, and nothing that was
// confirmed is lost.
func TestAServerThatIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	p := start(t, restartPorts, "nats", "postgres", "artemis")
	for _, c := range []struct {
		name, driver string
		seconds      int64 // of the run; the server is away for most of it at most
		options      string
	}{
		{"nats", "nats-jetstream", 10, `
const p = conn.producer('killed', { ackTimeout: '2s' });
const c = conn.consumer('killed', { group: 'workers', ackWait: '3s' });
export async function setup() { await conn.createTopic('killed', { storage: 'file' }); }`},
		{"postgres", "postgres", 10, `
const p = conn.producer('killed');
const c = conn.consumer('killed', { lease: '3s' });
export async function setup() { await conn.createTopic('killed'); }`},
		{"artemis", "amqp1", 40, `
const p = conn.producer('killed');
const c = conn.consumer('killed');
export async function setup() { await conn.createTopic('killed'); }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pulls := levers(t, map[string]func() error{
				"fault": func() error { return errors.Join(p.try("kill", c.name), p.try("restart", c.name)) },
			})
			o, r := runToOutcome(t, pull+`
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '30s' });`+c.options+steady,
				fmt.Sprint("SECONDS=", c.seconds), "RATE=1000", "BROKER_URL="+p.broker("url", c.name, c.driver), pulls)
			b := addsUp(t, o, r, 1000*c.seconds)
			// A quarter of the run was over when the server was killed.
			if b.failed == 0 || b.confirmed < 300*c.seconds {
				t.Errorf("failed %d, confirmed %d: did the run of %d seconds go on?\n%v", b.failed, b.confirmed, c.seconds, r)
			}
			b.nothingLost(t, r)
		})
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
			pulls := levers(t, map[string]func() error{
				"fault": func() error { return errors.Join(p.try("kill", c.name+"/primary"), c.instead(t.Context(), standby)) },
			})
			o, r := runToOutcome(t, pull+`
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '30s' });
const p = conn.producer('killed');
const c = conn.consumer('killed', `+c.options+`);
export async function setup() { await conn.createTopic('killed'); }
`+steady, fmt.Sprint("SECONDS=", c.seconds), "RATE=500", "WORK=1ms", "BROKER_URL="+address, pulls)
			b := addsUp(t, o, r, 500*c.seconds)
			if !strings.Contains(r.stdout, c.proof) {
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
