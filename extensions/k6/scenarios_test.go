package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Every scenario runs as it is on the embedded broker and keeps its thresholds. On a driver that lacks what it needs it says so in init.
func TestScenariosOnTheEmbeddedBroker(t *testing.T) {
	scripts, err := filepath.Glob("../../scenarios/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scenarios", err)
	}
	short := []string{"DURATION=3s", "RATE=200", "MESSAGES=20000", "SUBSCRIBERS=3"}
	for _, path := range scripts {
		for _, url := range []string{"embedded:", "embedded-nats:"} {
			t.Run(filepath.Base(path)+"/"+url, func(t *testing.T) {
				r := k6(t, append(short, "BROKER_URL="+url), "run", "--quiet", path)
				if strings.Contains(r.stderr, "cannot run this scenario") {
					if strings.Contains(r.stdout, "verdict") {
						t.Errorf("it ran all the same:\n%v", r)
					}
					t.Skip(r.stderr)
				}
				if r.code != 0 {
					t.Fatal(r)
				}
				for _, want := range []string{"verdict:", "lost 0", "duplicated 0", "embedded broker"} {
					if !strings.Contains(r.stdout, want) {
						t.Errorf("no %q in\n%s", want, r.stdout)
					}
				}
			})
		}
	}
}
