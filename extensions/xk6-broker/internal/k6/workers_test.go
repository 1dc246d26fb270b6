package k6

import "testing"

// A client that waits for the broker in each send keeps neither the event loop nor whoever sends
// next waiting, as long as a worker is idle.
func TestSendingThroughWorkers(t *testing.T) {
	s := newScript(t).begin()
	got := s.mustRun(`
const conn = broker.connect('waits://127.0.0.1:7');
await conn.createTopic('workers');
const p = conn.producer('workers', { workers: 2 });
const receipts = await Promise.all([1, 2, 3, 4, 5].map((i) => p.send('message ' + i)));
const proof = await p.ready();
const made = await p.produce({ count: 100, payload: { size: 100 } });
return JSON.stringify([receipts.map((r) => r.sequence).sort().join(), receipts.every((r) => r.time >= 1), made.confirmed, proof.confirm, proof.how]);
`)
	if want := `["0,1,2,3,4",true,100,"accepted","one process"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
