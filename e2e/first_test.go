package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

var shellBlocks = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// The commands of docs/first-test.md run as they stand in the page, and do as it says.
func TestFirstTest_Commands_DoAsThePageSays(t *testing.T) {
	harness.URL(t, "BROKER_URL_KAFKA")
	dir := t.TempDir()
	for name, target := range map[string]string{"k6": harness.Binary, "scripts": harness.Repo("scripts")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := "set -e\n"
	for _, block := range shellBlocks.FindAllStringSubmatch(string(harness.Read(t, harness.Repo("docs", "first-test.md"))), -1) {
		script += block[1] + "echo '== end of block'\n"
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &output, &output
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	blocks := strings.Split(output.String(), "== end of block\n")
	if len(blocks) != 7 {
		t.Fatalf("%d blocks\n%s", len(blocks)-1, output.String())
	}
	for i, want := range map[int]string{
		0: "kafka://",
		2: filepath.Join("results", "before", "report.html"),
		3: "exit code 99",
		4: "comparison.html",
		5: "exit code 99",
	} {
		if !strings.Contains(blocks[i], want) {
			t.Errorf("block %d has no %q:\n%s", i+1, want, blocks[i])
		}
	}
	for _, file := range []string{"results/before/report.html", "results/after/summary.json", "comparison.html"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}
