package report_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// The page in a real browser, and .hgrm and .hlog in the hands of HdrHistogram's own JavaScript library: web/test has what is asked of them.
func TestInNode(t *testing.T) {
	required := os.Getenv("BROKER_REQUIRE") == "all" && os.Getenv("BROKER_NODE_TEST") != "skip"
	missing := func(what string) {
		if required {
			t.Fatalf("BROKER_REQUIRE=all, and %s", what)
		}
		t.Skip(what)
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing("there is no node: the page and the histogram files are not tested")
	}
	if _, err := os.Stat("web/node_modules/hdr-histogram-js"); err != nil {
		missing("run npm ci --ignore-scripts in report/web: the page and the histogram files are not tested")
	}
	r, logs := stalledWithLogs()
	folder := report.Folder{Dir: t.TempDir(), Name: "stalled"}
	if err := folder.Write(r, logs, nil); err != nil {
		t.Fatal(err)
	}
	if err := (report.Folder{Dir: folder.Dir, Name: "crowded"}).Write(crowded(), nil, nil); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(folder.Path())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", "test/*.test.js")
	cmd.Dir = "web"
	cmd.Args = cmd.Args[:len(cmd.Args)-1]
	tests, err := filepath.Glob("web/test/*.test.js")
	if err != nil || len(tests) == 0 {
		t.Fatal("no tests", err)
	}
	for _, test := range tests {
		cmd.Args = append(cmd.Args, strings.TrimPrefix(filepath.ToSlash(test), "web/"))
	}
	cmd.Env = append(os.Environ(), "REPORT="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
