// Package studies runs the published benchmarks on real servers. It is a part of make test-full.
package studies

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, "1") }

var leftOut = regexp.MustCompile(`(?m)^left out: ([\w-]+): `)

// Each study runs at a five-hundredth of its length. Every test has rows, and the page has charts.
func TestStudies_RealServers_EveryTestHasRows(t *testing.T) {
	root := harness.Repo()
	files, err := filepath.Glob(filepath.Join(root, "scenarios", "studies", "*.js"))
	if err != nil || len(files) == 0 {
		t.Fatal("no studies", err)
	}
	node := filepath.Join(root, "scripts", "study-page")
	if out, err := exec.Command("npm", "ci", "--prefix", node, "--no-audit", "--no-fund").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".js")
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			study, page := filepath.Join(dir, "study"), filepath.Join(dir, "page")
			cmd := harness.Command(t.Context(), filepath.Join(root, "scripts", "study"), []string{"SCALE=0.002"},
				name, "--repeat", "1", "--out", study)
			printed, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, printed)
			}
			checkTables(t, study, leftOut.FindAllStringSubmatch(string(printed), -1))
			if err := os.Mkdir(page, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd = exec.Command("node", filepath.Join(node, "page.mjs"), name, study, page)
			if printed, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, printed)
			}
			charts, err := filepath.Glob(filepath.Join(page, "*.svg"))
			if err != nil || len(charts) == 0 {
				t.Error("the page has no charts", err)
			}
		})
	}
}

func checkTables(t *testing.T, folder string, leftOut [][]string) {
	t.Helper()
	var study struct {
		Lists []struct {
			Title string
			Items []string
		}
		Tables []struct {
			Title string
			Rows  [][]struct{ Text string }
		}
	}
	if err := json.Unmarshal(harness.Read(t, filepath.Join(folder, "study.json")), &study); err != nil {
		t.Fatal(err)
	}
	for _, list := range study.Lists {
		for _, item := range list.Items {
			if list.Title == "Not run" && strings.Contains(item, "has no value") && len(leftOut) == 0 {
				t.Errorf("not run, but no broker is left out: %s", item)
			}
		}
	}
	for _, table := range study.Tables {
		if len(table.Rows) == 0 && len(leftOut) == 0 {
			t.Errorf("%s: no rows", table.Title)
		}
		for _, row := range table.Rows {
			if strings.Contains(row[0].Text, "FAILED") {
				t.Errorf("%s: %s", table.Title, row[0].Text)
			}
		}
	}
}
