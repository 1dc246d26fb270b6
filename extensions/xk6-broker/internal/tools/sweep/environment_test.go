package sweep

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a script reads of the environment, and k6 and the module by themselves, is a part of what was asked for: with another a study is not gone on with.
func TestAStudyIsNotGoneOnWithInAnotherEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.js")
	if err := os.WriteFile(path, []byte("const { SIZE, ACKS: acks = 'all' } = __ENV;\nconnect(__ENV.BROKER_URL, { password: __ENV.BROKER_PASSWORD }, __ENV.RATE, __ENV.KEY);"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runnerOf(t)
	s, err := Inspect(t.Context(), r.K6, path)
	if err != nil {
		t.Fatal(err)
	}
	r.Args = []string{"-e", "KEY=1"}
	asked := func() []Fact { return r.Asked(s, []Setting{{"RATE", []string{"1", "2"}}}) }
	const before = "200000"
	for name, value := range map[string]string{"SIZE": before, "BROKER_PASSWORD": "hush", "BROKER_URL": "nats://TOKEN@h:4222", "ACKS": "all"} {
		t.Setenv(name, value)
	}
	folder := filepath.Join(t.TempDir(), "study")
	j, err := Begin(folder, asked())
	if err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	for _, c := range []struct{ name, value, want string }{
		{"SIZE", "100", "SIZE, of the environment: it was 200000, and is 100"},
		{"ACKS", "", "ACKS, of the environment: it was all, and is not given"},
		{"BROKER_URL", "nats://OTHER@h:4222", "BROKER_URL, of the environment: it was nats://xxxxx@h:4222"},
		{"BROKER_PASSWORD", "whisper", "BROKER_PASSWORD, of the environment: it was xxxxx"},
		{"BROKER_WARMUP", "5s", "BROKER_WARMUP, of the environment: it was nothing, and is 5s"},
		{"K6_VUS", "5", "K6_VUS, of the environment"},
		{"GOGC", "off", "GOGC, of the environment"},
		{"RATE", "7", ""}, // the study sets it
		{"KEY", "7", ""},  // so do its arguments
		{"OTHER", "7", ""},
		{"K6_NO_COLOR", "true", ""},
		{"BROKER_REPORT", "off", ""},
		{"SIZE", before, ""},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			j, err := Resume(folder, asked())
			switch {
			case err == nil:
				closed(t, j)
				if c.want != "" {
					t.Error("it is gone on with")
				}
			case c.want == "" || !strings.Contains(err.Error(), c.want):
				t.Errorf("%v, want %q", err, c.want)
			}
			for _, secret := range []string{"hush", "whisper", "TOKEN", "OTHER@"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	journal, err := os.ReadFile(filepath.Join(folder, JournalFile))
	if err != nil || bytes.Contains(journal, []byte("hush")) || bytes.Contains(journal, []byte("TOKEN")) {
		t.Errorf("%s %v", journal, err)
	}
	var page bytes.Buffer
	f := Findings{Asked: asked(), Plan: planOf(t, 1, 1, "RATE=1,2")}
	if err := f.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "BROKER_PASSWORD=xxxxx BROKER_URL=nats://xxxxx@h:4222") || !strings.Contains(page.String(), "SIZE=200000") {
		t.Errorf("the page of a sweep does not tell: %v", err)
	}
	c := Capacity{Journal: &Journal{Asked: asked()}, Rate: "RATE"}
	page.Reset()
	if err := c.writeHTML(&page); err != nil || !strings.Contains(page.String(), "SIZE=200000") || !strings.Contains(page.String(), "script.js") || strings.Contains(page.String(), "TOKEN") {
		t.Errorf("the page of a capacity does not tell: %v", err)
	}
}

// What is no part of one kind of study is not told of another.
func TestWhatIsNothingIsNotTold(t *testing.T) {
	j := Journal{Asked: []Fact{{"--reset", ""}, {"--from", "100"}}}
	if err := j.same([]Fact{{"--zip", ""}, {"--repeat", "2"}}); err == nil || strings.Contains(err.Error(), "--zip") || strings.Contains(err.Error(), "--reset") ||
		!strings.Contains(err.Error(), "--repeat: it was nothing, and is 2; --from: it was 100, and is not given") {
		t.Error(err)
	}
}
