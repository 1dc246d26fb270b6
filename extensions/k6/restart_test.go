package main

import (
	"errors"
	"testing"
)

// A server killed under load and started again with its data: errors are counted by kind, the run goes on, and nothing that was
// confirmed is lost.
func TestAServerThatIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	p := start(t, restartPorts, "nats")
	pulls := levers(t, map[string]func() error{
		"fault": func() error { return errors.Join(p.try("kill", "nats"), p.try("restart", "nats")) },
	})
	o, r := runToOutcome(t, pull+`
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '30s' });
const p = conn.producer('killed', { ackTimeout: '2s' });
const c = conn.consumer('killed', { group: 'workers', ackWait: '3s' });
export async function setup() { await conn.createTopic('killed', { storage: 'file' }); }
`+steady, "SECONDS=10", "RATE=1000", "BROKER_URL="+p.broker("url", "nats", "nats-jetstream"), pulls)
	b := addsUp(t, o, r, 10000)
	if b.failed == 0 || b.confirmed < 5000 {
		t.Errorf("failed %d, confirmed %d: the server was down for a moment of ten seconds\n%v", b.failed, b.confirmed, r)
	}
	b.nothingLost(t, r)
}
