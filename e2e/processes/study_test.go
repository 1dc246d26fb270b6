package processes

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Each of two processes gets all that a run before them has sent, and what they got is one result.
func TestStudyOfProcesses(t *testing.T) {
	t.Parallel()
	url := harness.URL(t, "BROKER_URL_NATS_JETSTREAM")
	file := harness.StudyFile(t, `export const study = {
  title: 'Readers', question: 'How many?', source: { citation: 'Nobody', url: 'https://example.org' },
  tests: [{
    name: 'readers', title: 'Readers', script: 'SCENARIOS/throughput.js', columns: [{ title: 'messages', measured: 'received' }],
    settings: { BROKER_URL: __ENV.READ_FROM, TOPIC: __ENV.READ, MODE: 'consume', MESSAGES: 20000, TOPIC_IS: 'prepared' },
    cells: [1, 2].map((processes) => ({ name: processes + ' at a time', processes, before: { MODE: 'produce', TOPIC_IS: 'anew', STAMP: 'off' } })),
  }],
};`)
	out := filepath.Join(filepath.Dir(file), "out")
	r := harness.K6(t, []string{"READ_FROM=" + url, "READ=" + filepath.Base(filepath.Dir(filepath.Dir(file)))}, "x", "broker", "study", file, "--out", out)
	if r.Code != 0 {
		t.Fatal(r)
	}
	tables := string(harness.Read(t, filepath.Join(out, "tables.md")))
	for _, want := range []string{`1 at a time .* \| 20000 \|`, `2 at a time .* \| 40000 \|`} {
		if !regexp.MustCompile(want).MatchString(tables) {
			t.Errorf("no %s in\n%s", want, tables)
		}
	}
}

var row = regexp.MustCompile(`\| (sent|received) .*? \| – \| (\d+) \| – \| (\d+) \| – \| (\d+) \|`)

// A process is killed while it sends, and one that has received and not acknowledged: what was confirmed to the one, and what the other had, the others receive.
func TestStudyOfAKilledProcess(t *testing.T) {
	t.Parallel()
	url := harness.URL(t, "BROKER_URL_NATS_JETSTREAM")
	file := harness.StudyFile(t, `export const study = {
  title: 'Crashes', question: 'What is lost?', source: { citation: 'Nobody', url: 'https://example.org' },
  tests: [{
    name: 'crashes', title: 'Crashes', script: 'SCENARIOS/senders-receivers.js',
    columns: [{ title: 'confirmed', measured: 'confirmed' }, { title: 'lost', measured: 'lost' }, { title: 'again', measured: 'redelivered' }],
    settings: { BROKER_URL: __ENV.SEND_TO + '?ackWait=2s', TOPIC: __ENV.SEND, TOPIC_IS: 'prepared', DURATION: '8s' },
    cells: [
      ['sent', { RECEIVERS: 0 }, { SENDERS: 0 }],
      ['received', { SENDERS: 0, ACK: 'off' }, {}],
    ].map(([name, killed, alive]) => ({
      name, before: { TOPIC_IS: 'anew', DURATION: '1s' }, processes: [{ settings: { ...killed, DURATION: '1h' }, kill: '2s' }, { settings: alive }],
    })),
  }],
};`)
	out := filepath.Join(filepath.Dir(file), "out")
	r := harness.K6(t, []string{"SEND_TO=" + url, "SEND=" + filepath.Base(filepath.Dir(filepath.Dir(file)))}, "x", "broker", "study", file, "--out", out)
	if r.Code != 0 {
		t.Fatal(r)
	}
	tables := string(harness.Read(t, filepath.Join(out, "tables.md")))
	found := row.FindAllStringSubmatch(strings.ReplaceAll(tables, " ✗", ""), -1)
	if len(found) != 2 {
		t.Fatal(tables)
	}
	for _, f := range found {
		if f[2] == "0" || f[3] != "0" || f[1] == "received" && f[4] == "0" {
			t.Errorf("%s: confirmed %s, lost %s, delivered again %s", f[1], f[2], f[3], f[4])
		}
	}
}
