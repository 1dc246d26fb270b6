package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// A study as a user has one, on the embedded broker.
func TestStudyOfAFile(t *testing.T) {
	t.Parallel()
	file := harness.StudyFile(t, `export const study = {
  title: 'Senders', question: 'How many messages?', source: { citation: 'Nobody', url: 'https://example.org' }, brokers: ['nats'],
  tests: [
    {
      name: 'closed', title: 'As fast as it goes', script: 'SCENARIOS/throughput.js', base: 'one', settings: { BROKER_URL: 'embedded:', MODE: 'produce', MESSAGES: 1000000 * SCALE, IN_FLIGHT: 1 },
      columns: [{ title: 'messages', measured: 'confirmed rate' }],
      cells: [
        { name: 'one', published: { messages: 1000 } }, { name: 'two', settings: { PRODUCERS: 2 }, published: { messages: 2000 } },
        { name: 'elsewhere', settings: { BROKER_URL: __ENV.NOWHERE } },
      ],
    },
    {
      name: 'open', title: 'On a schedule', script: 'SCENARIOS/senders-receivers.js', settings: { BROKER_URL: 'embedded:', DURATION: '2s', SENDERS: 4 },
      columns: [{ title: 'messages', measured: 'confirmed' }, { title: 'lost', measured: 'lost' }],
      cells: [{ name: 'slow', settings: { RATE: 100 } }],
    },
  ],
};`)
	out := filepath.Join(filepath.Dir(file), "out")
	if r := harness.K6(t, nil, "x", "broker", "study", file, "--scale", "0.1", "--out", out); r.Code != 0 {
		t.Fatal(r)
	}
	if err := os.RemoveAll(filepath.Join(out, "cells", "open-1-1-slow")); err != nil {
		t.Fatal(err)
	}
	r := harness.K6(t, nil, "x", "broker", "study", file, "--scale", "0.1", "--out", out, "--resume")
	if r.Code != 0 || strings.Contains(r.Stdout, "closed: ") || !strings.Contains(r.Stdout, "open: slow") {
		t.Fatal(r)
	}
	tables := string(harness.Read(t, filepath.Join(out, "tables.md")))
	for _, want := range []string{
		`\| one[^|]* \| 1000/s \| [\d.,]+/s \| 1 \| 1\?? \|`, `\| two[^|]* \| 2000/s \| [\d.,]+/s \| 2 \| [\d.]+\?? \|`, `\| slow[^|]* \| [1-9]\d* \| 0 \|`,
		`accepted: 1 replica`, `- closed, elsewhere: BROKER_URL has no value`, `nats-server`,
	} {
		if !regexp.MustCompile(want).MatchString(tables) {
			t.Errorf("no %s in\n%s", want, tables)
		}
	}
	links := regexp.MustCompile(`\]\((cells/[^)]+)\)`).FindAllStringSubmatch(tables, -1)
	for _, link := range links {
		if _, err := os.Stat(filepath.Join(out, link[1])); err != nil {
			t.Error(err)
		}
	}
	if len(links) != 6 {
		t.Errorf("the tables have %d links, want a page and a log of 3 runs", len(links))
	}
	for want, args := range map[string][]string{
		"exists already":                     {"--scale", "0.1", "--out", out},
		"cells of closed was":                {"--out", out, "--resume"},
		"a study needs a title and tests":    {"--only", "opened"},
		"must be more than 0, and 1 at most": {"--scale", "2"},
	} {
		if r := harness.K6(t, nil, append([]string{"x", "broker", "study", file}, args...)...); r.Code == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("want %q\n%v", want, r)
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
		for _, name := range brokerURL.FindAllString(string(harness.Read(t, file)), -1) {
			env = append(env, name+"=")
		}
		out := filepath.Join(t.TempDir(), "out")
		r := harness.K6(t, env, "x", "broker", "study", file, "--out", out)
		if r.Code == 0 || !strings.Contains(r.Stderr, "nothing can be run: BROKER_URL has no value") {
			t.Errorf("%s: %v", file, r)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: there is a folder", file)
		}
		if r := harness.K6(t, env, "x", "broker", "study", file, "--brokers"); r.Code != 0 || strings.TrimSpace(r.Stdout) == "" {
			t.Errorf("%s: %v", file, r)
		}
	}
}
