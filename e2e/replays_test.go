package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// studyFile writes a study's file, in which SCENARIOS is the path to the scenarios of the repository.
func studyFile(t *testing.T, text string) string {
	t.Helper()
	scenarios, err := filepath.Abs("../scenarios")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	to, err := filepath.Rel(dir, scenarios)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "study.js")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "SCENARIOS", filepath.ToSlash(to))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A study as a user has one, on the embedded broker: the second test takes its rate from what the first measured.
func TestStudyOfAFile(t *testing.T) {
	t.Parallel()
	file := studyFile(t, `export const study = {
  title: 'Senders', question: 'How many messages?', source: { citation: 'Nobody', url: 'https://example.org' }, brokers: ['nats'],
  tests: [
    {
      name: 'closed', title: 'As fast as it goes', script: 'SCENARIOS/throughput.js', base: 'one', settings: { BROKER_URL: 'embedded:', MODE: 'produce', MESSAGES: 100000 * SCALE },
      columns: [{ title: 'messages', measured: 'confirmed rate' }],
      cells: [
        { name: 'one', published: { messages: 1000 } }, { name: 'two', settings: { PRODUCERS: 2 }, published: { messages: 2000 } },
        { name: 'elsewhere', settings: { BROKER_URL: __ENV.NOWHERE } },
      ],
    },
    {
      name: 'open', title: 'On a schedule', script: 'SCENARIOS/senders-receivers.js', settings: { BROKER_URL: 'embedded:', DURATION: '2s', SENDERS: 4 },
      columns: [{ title: 'messages', measured: 'confirmed' }, { title: 'lost', measured: 'lost' }],
      cells: [{ name: 'at 1 %', settings: { RATE: { test: 'closed', cell: 'one', column: 'messages', times: 0.01 } } }],
    },
  ],
};`)
	out := filepath.Join(filepath.Dir(file), "out")
	if r := k6(t, nil, "x", "broker", "study", file, "--scale", "0.1", "--only", "closed", "--out", out); r.code != 0 {
		t.Fatal(r)
	}
	r := k6(t, nil, "x", "broker", "study", file, "--scale", "0.1", "--out", out, "--resume")
	if r.code != 0 || strings.Contains(r.stdout, "closed: ") || !strings.Contains(r.stdout, "open: at 1 %") {
		t.Fatal(r)
	}
	tables := string(read(t, filepath.Join(out, "tables.md")))
	for _, want := range []string{
		`\| one( ✗)? \| 1000/s \| [\d.,]+/s \| 1 \| 1 \|`, `\| two( ✗)? \| 2000/s \| [\d.,]+/s \| 2 \| [\d.]+ \|`, `\| at 1 %( ✗)? \| [1-9]\d* \| 0 \|`,
		`Confirmed means accepted: 1 replica`, `- elsewhere: BROKER_URL of "elsewhere" has no value`, `nats-server`,
	} {
		if !regexp.MustCompile(want).MatchString(tables) {
			t.Errorf("no %s in\n%s", want, tables)
		}
	}
	page := string(read(t, filepath.Join(out, "index.html")))
	for _, link := range regexp.MustCompile(`href="(cells/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(out, link[1])); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(page, `href="cells/`); n != 3 {
		t.Errorf("the page leads to %d runs, want 3", n)
	}
	for want, args := range map[string][]string{
		"exists already":                                {"--scale", "0.1", "--out", out},
		"scale: it was 0.1, and is 1;":                  {"--out", out, "--resume"},
		"there is no such test: there are closed, open": {"--only", "opened"},
		"must be more than 0, and 1 at most":            {"--scale", "2"},
	} {
		if r := k6(t, nil, append([]string{"x", "broker", "study", file}, args...)...); r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("want %q\n%v", want, r)
		}
	}
}

// Each of two processes gets all that a run before them has sent, and what they got is one result.
func TestStudyOfProcesses(t *testing.T) {
	t.Parallel()
	url := external(t, "BROKER_URL_NATS_JETSTREAM")
	file := studyFile(t, `export const study = {
  title: 'Readers', question: 'How many?', source: { citation: 'Nobody', url: 'https://example.org' },
  tests: [{
    name: 'readers', title: 'Readers', script: 'SCENARIOS/throughput.js', columns: [{ title: 'messages', measured: 'received' }],
    settings: { BROKER_URL: __ENV.READ_FROM, TOPIC: __ENV.READ, MODE: 'consume', MESSAGES: 20000, TOPIC_IS: 'prepared' },
    cells: [1, 2].map((processes) => ({ name: processes + ' at a time', processes, before: { MODE: 'produce', TOPIC_IS: 'anew', STAMP: 'off' } })),
  }],
};`)
	out := filepath.Join(filepath.Dir(file), "out")
	r := k6(t, []string{"READ_FROM=" + url, "READ=" + filepath.Base(filepath.Dir(filepath.Dir(file)))}, "x", "broker", "study", file, "--out", out)
	if r.code != 0 {
		t.Fatal(r)
	}
	tables := string(read(t, filepath.Join(out, "tables.md")))
	for _, want := range []string{"| 1 at a time | 20000 |", "| 2 at a time | 40000 |"} {
		if !strings.Contains(tables, want) {
			t.Errorf("no %s in\n%s", want, tables)
		}
	}
}

var row = regexp.MustCompile(`\| (sent|received) \| (\d+) \| (\d+) \| (\d+) \|`)

// A process is killed while it sends, and one that has received and not acknowledged: what was confirmed to the one, and what the other had, the others receive.
func TestStudyOfAKilledProcess(t *testing.T) {
	t.Parallel()
	url := external(t, "BROKER_URL_NATS_JETSTREAM")
	file := studyFile(t, `export const study = {
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
	r := k6(t, []string{"SEND_TO=" + url, "SEND=" + filepath.Base(filepath.Dir(filepath.Dir(file)))}, "x", "broker", "study", file, "--out", out)
	if r.code != 0 {
		t.Fatal(r)
	}
	tables := string(read(t, filepath.Join(out, "tables.md")))
	found := row.FindAllStringSubmatch(strings.ReplaceAll(tables, " ✗", ""), -1)
	if len(found) != 2 {
		t.Fatal(tables)
	}
	for _, f := range found {
		if f[2] == "0" || f[3] != "0" || (f[4] != "0") != (f[1] == "received") {
			t.Errorf("%s: confirmed %s, lost %s, delivered again %s", f[1], f[2], f[3], f[4])
		}
	}
}

var brokerURL = regexp.MustCompile(`BROKER_URL_\w+`)

// The studies of the repository are understood, their scripts read every setting that they give, and without a broker they say which they need.
func TestPublishedStudies(t *testing.T) {
	t.Parallel()
	studies, err := filepath.Glob("../scenarios/studies/*.js")
	if err != nil || len(studies) == 0 {
		t.Fatal("no studies", err)
	}
	for _, file := range studies {
		var env []string
		for _, name := range brokerURL.FindAllString(string(read(t, file)), -1) {
			env = append(env, name+"=")
		}
		out := filepath.Join(t.TempDir(), "out")
		r := k6(t, env, "x", "broker", "study", file, "--out", out)
		if r.code == 0 || !strings.Contains(r.stderr, "nothing can be run: BROKER_URL of") {
			t.Errorf("%s: %v", file, r)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: there is a folder", file)
		}
		if r := k6(t, env, "x", "broker", "study", file, "--brokers"); r.code != 0 || strings.TrimSpace(r.stdout) == "" {
			t.Errorf("%s: %v", file, r)
		}
	}
}
