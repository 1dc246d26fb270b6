package k6

import "testing"

// Several receives of one VU at a time get the messages in some order, but each message after those
// before it: nothing was reordered.
func TestReceivesSideBySideKeepTheOrder(t *testing.T) {
	s := withBytes(t)
	s.mustRun(`
		await c.ready();
		await p.produce({ count: 4000 });
		let left = 4000;
		while (left > 0) {
			await Promise.all(Array.from({ length: 64 }, async () => {
				const batch = await c.receive({ max: 1, wait: '50ms' });
				left -= batch.length;
				await c.ack(batch);
			}));
		}`)
	for _, a := range s.module.run.Counts() {
		if a.Received != 4000 || a.Reordered != 0 || a.Duplicated != 0 {
			t.Errorf("%+v", a)
		}
	}
}
