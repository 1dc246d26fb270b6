package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// unwritten is the exit code of results that could not be written as a whole, as docs/results.md says.
const unwritten = 74

// reporting is a script of 100 messages that writes its results as the scenarios do, and pulls the lever "begun" when the init context is
// over and nothing has been sent, and "ended" when all has. Its VUs are not planned but for one.
func reporting(t *testing.T) string {
	t.Helper()
	return harness.Script(t, `import broker from 'k6/x/broker';
`+harness.Pull+`
import { sleep } from 'k6';
export { handleSummary } from 'k6/x/broker';
const topic = __ENV.TOPIC || 'reporting';
const conn = broker.connect('embedded:');
const p = conn.producer(topic);
export const options = { scenarios: { all: {
  executor: 'constant-arrival-rate', rate: 50, duration: '2s', preAllocatedVUs: 1, maxVUs: 20,
} } };
export async function setup() {
  await conn.createTopic(topic);
  if (__ENV.LEVERS) pull('begun');
}
export default async function () {
  await p.send('x');
  sleep(0.1);
}
export function teardown() {
  if (__ENV.LEVERS) pull('ended');
}
`)
}

func nothing() error { return nil }

// sent is how many messages the results in a folder say were sent.
func sent(t *testing.T, folder string) int64 {
	t.Helper()
	result, err := summary.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return result.Topics[0].Counts["sent"]
}

// A folder that appears while the test runs stops neither VUs that come later nor the results, which go to another name.
func TestAFolderThatAppearsDuringTheTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "mine", summary.File)
	appear := harness.Levers(t, map[string]func() error{"begun": func() error {
		if err := os.Mkdir(filepath.Dir(taken), 0o750); err != nil {
			return err
		}
		return os.WriteFile(taken, []byte("hi"), 0o600)
	}, "ended": nothing})
	r := harness.K6(t, harness.Settings(dir, "mine", appear), "run", "--quiet", reporting(t))
	if r.Code != 0 || strings.Contains(r.Stderr, "Error while allocating") || !strings.Contains(r.Stderr, "the results are in "+filepath.Join(dir, "mine-2")) {
		t.Fatal(r)
	}
	if text, err := os.ReadFile(taken); err != nil || string(text) != "hi" {
		t.Errorf("what had the name is %q, %v", text, err)
	}
	if n := sent(t, filepath.Join(dir, "mine-2")); n < 20 { // one VU alone sends no more
		t.Errorf("sent %d", n)
	}
}

// together makes a lever that lets nobody go on before all have pulled it.
func together(t *testing.T, n int) string {
	var all sync.WaitGroup
	all.Add(n)
	return harness.Levers(t, map[string]func() error{"begun": func() error {
		all.Done()
		all.Wait()
		return nil
	}, "ended": nothing})
}

func TestThreeRunsOfOneNameAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	dir, path, begun := t.TempDir(), reporting(t), together(t, 3)
	var wg sync.WaitGroup
	for n := range 3 {
		wg.Go(func() {
			if r := harness.K6(t, harness.Settings(dir, "mine", begun, fmt.Sprintf("TOPIC=of-%d", n)), "run", "--quiet", path); r.Code != 0 {
				t.Error(r)
			}
		})
	}
	wg.Wait()
	if got := harness.Names(t, dir); !slices.Equal(got, []string{"mine", "mine-2", "mine-3"}) {
		t.Fatalf("folders %q", got)
	}
	topics := map[string]bool{}
	for _, name := range harness.Names(t, dir) {
		result, err := summary.Read(filepath.Join(dir, name))
		if err != nil || result.Name != name {
			t.Fatal(result, err)
		}
		topics[result.Topics[0].Topic] = true
	}
	if len(topics) != 3 {
		t.Errorf("the results of %v", topics)
	}
}

func TestTwoRunsThatOverwriteOneFolderAtOnceAreNotMixed(t *testing.T) {
	t.Parallel()
	dir, path, begun := t.TempDir(), reporting(t), together(t, 2)
	if r := harness.K6(t, harness.Settings(dir, "mine"), "run", "--quiet", path); r.Code != 0 {
		t.Fatal(r)
	}
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			env := harness.Settings(dir, "mine", begun, "BROKER_REPORT_OVERWRITE=true", fmt.Sprintf("TOPIC=of-%d", n))
			if r := harness.K6(t, env, "run", "--quiet", path); r.Code != 0 {
				t.Error(r)
			}
		})
	}
	wg.Wait()
	result, err := summary.Read(filepath.Join(dir, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	topic := result.Topics[0].Topic
	for _, name := range harness.Names(t, filepath.Join(dir, "mine")) {
		if name != summary.File && name != summary.Page && name != "recording.bin" && !strings.HasPrefix(name, topic+".") {
			t.Errorf("%s beside the results of %s", name, topic)
		}
	}
	if got := harness.Names(t, dir); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("left behind: %q", got)
	}
}

// disk mounts a file system of so many bytes.
func disk(t *testing.T, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", size), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small disk cannot be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return dir
}

// What the disk takes is written, the most important first; the terminal says what is missing, and the exit code that something is.
func TestAFullDiskIsToldByTheExitCode(t *testing.T) {
	t.Parallel()
	path, roomy := reporting(t), t.TempDir()
	if r := harness.K6(t, harness.Settings(roomy, "mine"), "run", "--quiet", path); r.Code != 0 {
		t.Fatal(r)
	}
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(roomy, "mine", name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	t.Run("room for the summary", func(t *testing.T) {
		dir := disk(t, size(summary.File)+size(summary.Page)/2)
		r := harness.K6(t, harness.Settings(dir, "mine"), "run", "--quiet", path)
		folder := filepath.Join(dir, "mine")
		if r.Code != unwritten || !strings.Contains(r.Stderr, summary.Page+": no space left on device") ||
			!strings.Contains(r.Stdout, "results: "+filepath.Join(folder, summary.File)) || !strings.Contains(r.Stdout, "iterations") {
			t.Fatal(r)
		}
		if n := sent(t, folder); n == 0 {
			t.Error("nothing was sent")
		}
	})
	t.Run("no room", func(t *testing.T) {
		dir, temp := disk(t, 8<<10), t.TempDir()
		r := harness.K6(t, harness.Settings(dir, "mine", "TMPDIR="+temp), "run", "--quiet", path)
		if r.Code != unwritten || len(harness.Names(t, temp)) != 1 {
			t.Fatalf("%q\n%v", harness.Names(t, temp), r)
		}
		folder := filepath.Join(temp, harness.Names(t, temp)[0], "mine")
		if n := sent(t, folder); n == 0 || !strings.Contains(r.Stderr, "the results are in "+folder) || !strings.Contains(r.Stdout, folder) {
			t.Errorf("sent %d\n%v", n, r)
		}
	})
}

// Where results can be written nowhere the exit code tells; where a threshold has failed too, it has that code.
func TestResultsThatCannotBeWrittenAnywhere(t *testing.T) {
	t.Parallel()
	path := reporting(t)
	strict := harness.Script(t, strings.Replace(string(harness.Read(t, path)), "scenarios:", "thresholds: { broker_sent: ['count<1'] }, scenarios:", 1))
	for path, code := range map[string]int{path: unwritten, strict: 99} {
		dir, temp := filepath.Join(t.TempDir(), "results"), filepath.Join(t.TempDir(), "temp")
		if err := os.Mkdir(temp, 0o750); err != nil {
			t.Fatal(err)
		}
		inTheWay := func(path string) error { return os.WriteFile(path, nil, 0o600) }
		end := harness.Levers(t, map[string]func() error{
			"begun": func() error { return inTheWay(dir) },
			"ended": func() error { return errors.Join(os.Rename(temp, temp+"-away"), inTheWay(temp)) },
		})
		r := harness.K6(t, harness.Settings(dir, "mine", "TMPDIR="+temp, end), "run", "--quiet", path)
		if r.Code != code || !strings.Contains(r.Stderr, "not a directory") || !strings.Contains(r.Stdout, "verdict:") ||
			!strings.Contains(r.Stdout, "iterations") || strings.Contains(r.Stdout, "results:") {
			t.Error(r)
		}
	}
}
