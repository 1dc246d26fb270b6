package js

import "testing"

// A script that describes all that it uses in each iteration uses one consumer, which gets all messages.
func TestObjectsDescribedAgain_AreTheSame(t *testing.T) {
	s := newScript(t).begin()
	got := s.mustRun(`
		await broker.connect('memory:').createTopic('again');
		const seen = new Set();
		let received = 0;
		for (let i = 0; i < 4; i++) {
			const conn = broker.connect('memory:', { drainTimeout: '1s' });
			const producer = conn.producer('again', { maxInFlight: 10 }), consumer = conn.consumer('again', { start: 'earliest', group: 'g' });
			[conn, producer, consumer].forEach((o) => seen.add(o));
			await producer.send('x');
			received += (await consumer.receive()).length;
		}
		return [seen.size, received].join();`)
	if got != "3,4" {
		t.Errorf("objects, messages received: %v, want 3,4", got)
	}
}

func TestObjectsDescribedOtherwise_AreOthers(t *testing.T) {
	s := newScript(t)
	got := s.mustRun(`
		const conn = broker.connect('memory:'), all = [
			conn, broker.connect('memory:', { drainTimeout: 1000 }), broker.connect('memory:', { drainTimeout: '1000' }),
			conn.producer('t'), conn.consumer('t'), conn.producer('u'), conn.consumer('t', { group: 'g' }), conn.consumer('t', { group: 'h' }),
		];
		return all.length - new Set(all).size;`)
	if got != int64(0) {
		t.Errorf("%v objects are the same as others", got)
	}
}
