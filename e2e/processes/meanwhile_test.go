package processes

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

var sendersReceivers = harness.Repo("scenarios/senders-receivers.js")

// A process that is killed leaves its results so far, and one that ends nothing but its results.
func TestResultsMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"BROKER_REPORT_DIR=" + dir, "BROKER_REPORT_MEANWHILE=on", "BROKER_URL=embedded:"}
	cmd := exec.Command(harness.Binary, "run", "--quiet", sendersReceivers)
	cmd.Env = append(append(os.Environ(), env...), "K6_NO_USAGE_REPORT=true", "BROKER_REPORT_NAME=killed", "DURATION=5m", "BROKER_RUN=meanwhile")
	text := harness.Watch("")
	cmd.Stdout, cmd.Stderr = text, text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	left := filepath.Join(dir, "killed-meanwhile")
	for began := time.Now(); confirmed(left) == 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			_ = cmd.Process.Kill()
			t.Fatalf("nothing was confirmed, %v:\n%s", <-ended, text)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("it ended by itself")
	}
	if confirmed(left) == 0 {
		t.Error("it left no results")
	}
	if info, err := os.Stat(filepath.Join(left, "ledger.bin")); err != nil || info.Size() == 0 {
		t.Errorf("it left no ledger: %v", err)
	}
	if r := harness.K6(t, append(env, "BROKER_REPORT_NAME=whole", "DURATION=3s"), "run", "--quiet", sendersReceivers); r.Code != 0 {
		t.Fatal(r)
	}
	if confirmed(filepath.Join(dir, "whole")) == 0 {
		t.Error("a test that ended has no results")
	}
	if _, err := os.Stat(filepath.Join(dir, "whole-meanwhile")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the results so far stay: %v", err)
	}
	if r := harness.K6(t, env, "run", "--quiet", sendersReceivers); r.Code == 0 || !strings.Contains(r.Stderr, "BROKER_REPORT_MEANWHILE: the results so far need a name for their folder: set BROKER_REPORT_NAME") {
		t.Error(r)
	}
}

// confirmed counts the confirmed messages of a folder's recording; 0 if it has none.
func confirmed(folder string) (n int64) {
	file, err := os.Open(filepath.Join(folder, "recording.bin"))
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }() // only read
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return 0
	}
	for intervals := json.NewDecoder(unzipped); ; {
		var interval struct {
			Records []struct {
				Counts map[string]int64 `json:"counts"`
			} `json:"records"`
		}
		if intervals.Decode(&interval) != nil { // its end, which may be cut off
			return n
		}
		for _, r := range interval.Records {
			n += r.Counts["confirmed"]
		}
	}
}
