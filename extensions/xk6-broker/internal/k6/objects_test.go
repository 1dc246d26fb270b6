package k6

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.k6.io/k6/v2/lib/fsext"
)

// A script that describes all that it uses in each iteration uses one consumer, which gets all
// messages.
func TestObjectsDescribedAgain_AreTheSame(t *testing.T) {
	s := newScript(t).begin()
	got := s.mustRun(`
		await broker.connect('memory:').createTopic('described');
		const seen = new Set();
		let received = 0;
		for (let i = 0; i < 4; i++) {
			const conn = broker.connect('memory:', { drainTimeout: '1s' });
			const producer = conn.producer('described', { maxInFlight: 10 }), consumer = conn.consumer('described', { start: 'earliest', group: 'g' });
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

// Files are read in the init context. A connection that was described there may be described again
// in a VU.
func TestFilesOfOptions_OutsideOfInit_Refused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newScript(t)
	s.init.CWD = &url.URL{Scheme: "file", Path: dir}
	s.init.FileSystems = map[string]fsext.Fs{"file": fsext.NewOsFs()}
	s.mustRun(`broker.connect('files://h', { tlsCA: './ca.pem' });`)
	if _, err := s.run(`broker.connect('files://h', { tlsCA: 'none.pem' });`); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "none.pem")) {
		t.Errorf("%v; want where it was looked for", err)
	}
	s.begin().mustRun(`broker.connect('files://h', { tlsCA: './ca.pem' });`)
	if _, err := s.run(`broker.connect('files://h', { tlsCA: 'ca.pem' });`); err == nil || !strings.Contains(err.Error(), `option "tlsCA": ca.pem: files are read in the init context only`) {
		t.Error(err)
	}
}
