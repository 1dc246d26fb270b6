package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

const sendersReceivers = "../scenarios/senders-receivers.js"

// A process that is killed leaves its results so far, and one that ends nothing but its results.
func TestResultsMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"BROKER_REPORT_DIR=" + dir, "BROKER_REPORT_MEANWHILE=on", "BROKER_URL=embedded:"}
	cmd := exec.Command(k6Path, "run", "--quiet", sendersReceivers)
	cmd.Env = append(append(os.Environ(), env...), "K6_NO_USAGE_REPORT=true", "BROKER_REPORT_NAME=killed", "DURATION=5m", "BROKER_RUN=meanwhile")
	var text watched
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	left := filepath.Join(dir, "killed-meanwhile")
	for began := time.Now(); confirmed(left) == 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			_ = cmd.Process.Kill()
			t.Fatalf("nothing was confirmed, %v:\n%s", <-ended, &text)
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
	if r := k6(t, append(env, "BROKER_REPORT_NAME=whole", "DURATION=3s"), "run", "--quiet", sendersReceivers); r.code != 0 {
		t.Fatal(r)
	}
	if confirmed(filepath.Join(dir, "whole")) == 0 {
		t.Error("a test that ended has no results")
	}
	if _, err := os.Stat(filepath.Join(dir, "whole-meanwhile")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what it said meanwhile stays: %v", err)
	}
	if r := k6(t, env, "run", "--quiet", sendersReceivers); r.code == 0 || !strings.Contains(r.stderr, "BROKER_REPORT_MEANWHILE: the results so far need a name for their folder: give BROKER_REPORT_NAME") {
		t.Error(r)
	}
}

// A VU that takes 100 ms for each of 100 arrivals a second leaves nine of ten waiting. The results so far know how many, and what is merged of a process that is
// killed then goes by that.
func TestArrivalsThatWaitWhenTheirProcessIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(k6Path, "run", "--quiet", script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('orders');
export const options = { scenarios: { s: { executor: 'open-arrival-rate', rate: 100, duration: '5m', preAllocatedVUs: 1 } } };
export async function setup() { await conn.createTopic('orders'); }
export default async function () { await p.send(['one', 'two']); await new Promise((done) => setTimeout(done, 100)); }
export { handleSummary } from 'k6/x/broker';`))
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "BROKER_REPORT_DIR="+dir, "BROKER_REPORT_MEANWHILE=on", "BROKER_REPORT_NAME=killed", "BROKER_RUN=waiting")
	var text watched
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "killed-meanwhile")
	for began := time.Now(); confirmed(left) < 40; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	s, err := summary.Read(left)
	if err != nil {
		t.Fatalf("%v:\n%s", err, &text)
	}
	topic := s.Topics[0]
	due, sent := topic.Counts["due"], topic.Counts["sent"]
	if asked := 200 * s.Seconds; topic.Underway == nil || topic.Underway.Arrivals != uint64(due-sent) || float64(due) < 0.5*asked || float64(due) > 1.1*asked {
		t.Errorf("due %d and sent %d in %v s, of two messages 100 times a second: %+v", due, sent, s.Seconds, topic.Underway)
	}
}

// confirmed counts the messages that a folder's results say to be confirmed; 0 where there are none.
func confirmed(folder string) (n int64) {
	s, err := summary.Read(folder)
	if err != nil {
		return 0
	}
	for _, topic := range s.Topics {
		n += topic.Counts["confirmed"]
	}
	return n
}
