package report_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// settings is a page of charts over settings: of numbers, of numbers that are far apart, and of names.
func settings(t *testing.T) []byte {
	t.Helper()
	values := func(all ...float64) (pointers []*float64) {
		for i := range all {
			if all[i] < 0 {
				pointers = append(pointers, nil)
				continue
			}
			pointers = append(pointers, &all[i])
		}
		return pointers
	}
	lines := []report.Line{
		{Label: "one", Values: values(2, 4, 6), Low: values(1, 4, 5), High: values(3, 4, 9)},
		{Label: "two with a name so long that no narrow screen has room for it on one line", Colour: 1, Values: values(1, -1, 2), Low: values(1, -1, 2), High: values(1, -1, 2)},
	}
	p := report.Page{Title: "settings", Charts: []report.Chart{
		{ID: "numbers", Title: "numbers", Axis: "setting", Label: "SIZE", X: []float64{1, 2, 3}, Ticks: []string{"1", "2", "3"}, Unit: "/s", Lines: lines},
		{ID: "decades", Title: "decades", Axis: "setting", Label: "SIZE", X: []float64{1, 100, 10000}, Ticks: []string{"1", "100", "10000"}, Unit: "ms", Log: true, Decades: true, Lines: lines},
		{ID: "names", Title: "names", Axis: "setting", Label: "BROKER", X: []float64{0, 1, 2}, Ticks: []string{"a", "b", "c"}, Unit: "", Apart: true, Lines: lines},
	}, Body: []string{"numbers", "decades", "names"}}
	var b bytes.Buffer
	if err := p.Render(&b, report.Template(`{{define "content"}}<div class="charts">{{range .}}<figure id="{{.}}" class="chart"></figure>{{end}}</div>{{end}}`)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

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
	r := stalled()
	folder := report.Folder{Dir: t.TempDir(), Name: "stalled"}
	if err := folder.Write(r, nil); err != nil {
		t.Fatal(err)
	}
	if err := (report.Folder{Dir: folder.Dir, Name: "crowded"}).Write(crowded(), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder.Dir, "settings.html"), settings(t), 0o600); err != nil {
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
